"""The words of a command line in the order in which Typer takes them: the command first, its options behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypercode.errors import ConfigError

__all__ = ["COMMANDS", "VALUE_OPTIONS", "behind_subcommand", "in_order", "past_options", "takes_value"]

COMMANDS = ("chat", "run", "sessions", "replay", "models", "config", "policy", "doctor", "demo")
VALUE_OPTIONS = frozenset(
    [
        "-m",
        "--model",
        "-r",
        "--resume",
        "--profile",
        "--base-url",
        "--local-model",
        "--mode",
        "--allow",
        "--deny",
        "--cwd",
        "--add-dir",
        "--max-turns",
        "--max-cost",
        "--timeout",
        "--idle-timeout",
        "--max-retries",
        "--output",
        "--speed",
        "--format",
    ]
)
"""The options, of whatever command, whose value may be the next word."""

_COMPLETION = ("--install-completion", "--show-completion")
_DEFAULTS = {"config": "show", "policy": "", "sessions": "list"}  # what each group does that is given no command


def in_order(argv: Sequence[str], tree: Callable[[], Any]) -> list[str]:
    """The words with the command first.  Raises ConfigError for a single word that is no command.

    Options may stand before or after the command, `--` ends them, and a sentence without a command is a message, whatever
    it begins with.  `tree` gives the commands as Click has them.
    """
    if (
        not argv
        or argv[0] in ("-h", "--help", "-V", "--version")
        or (argv[0].partition("=")[0] in _COMPLETION and not _is_sentence(argv[0]))
    ):
        return list(argv) or ["chat"]
    argv = _with_resume(argv)
    position = past_options(argv)
    before, rest = argv[:position], argv[position + 1 :]
    word = argv[position] if position < len(argv) else "--"
    if word in _DEFAULTS:
        return [word, *behind_subcommand([*before, *rest], tree().commands[word], _DEFAULTS[word])]
    if word in COMMANDS:
        return [word, *(_sentences_last([*before, *rest]) if word in ("chat", "run") else [*before, *rest])]
    if word != "--" and " " not in word.strip() and "\n" not in word and word.isascii():
        _refuse(word, argv, tree)
    return ["chat", *_sentences_last(argv)]


def behind_subcommand(words: Sequence[str], group: Any, default: str = "") -> list[str]:
    """The words of a group with its command first and the options that stood before it behind it.

    Where there is no command but an option that only the `default` one has, that one is meant.
    """
    position = past_options(words)
    options, rest = words[:position], words[position:]
    if rest and rest[0] in group.commands:
        return [rest[0], *options, *rest[1:]]
    given = {name for word in options if _is_option(word) for name in _names(word)}
    own = {name for p in group.params for name in p.opts}
    if default and not rest and any(given & set(p.opts) for p in group.commands[default].params) and not given & own:
        return [default, *options]
    return list(words)


def takes_value(word: str) -> bool:
    """Whether the next word is this option's value; of several letters together the last one may take it."""
    if word in VALUE_OPTIONS:
        return True
    names = _names(word) if _is_option(word) and not word.startswith("--") else []
    return bool(names) and names[-1] in VALUE_OPTIONS and len(names) == len(word) - 1


def past_options(words: Sequence[str]) -> int:
    """The place of the first word that is neither an option nor the value of one; `--` is such a word.

    It is behind the end by one where the last option lacks its value.
    """
    position = 0
    while position < len(words) and _is_option(words[position]) and words[position] != "--":
        position += 2 if takes_value(words[position]) else 1
    return position


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _is_sentence(word)


def _is_sentence(word: str) -> bool:
    """Whether a word that begins like an option is none: a blank comes before the value that it might have."""
    begin = word.split(maxsplit=1)[0] if word.strip() else word
    if begin == word:
        return False
    names = _names(begin)
    return "=" not in begin if begin.startswith("--") else not (names and len(names) < len(begin) - 1)


def _sentences_last(words: Sequence[str]) -> list[str]:
    """The words of a message behind `--` where one of them begins like an option and is none."""
    options, message = _parted(words)
    end = words.index("--") if "--" in words else len(words)
    odd = any(word.startswith("-") and word != "-" for word in message if word in words[:end])
    return [*options, "--", *message] if odd else list(words)


def _refuse(word: str, argv: Sequence[str], tree: Callable[[], Any]) -> None:
    """Raises ConfigError: the word is no command.  Not where an option is none either, which the parser of the chat says."""
    import difflib
    import shlex

    options, words = _parted(argv)
    names = [name for word in options if _is_option(word) for name in _names(word)]
    known = _known_options(tree())
    if not set(names) <= set[str]().union(*known.values()):
        return
    close = difflib.get_close_matches(word, COMMANDS, 1, 0.65)
    nearest = f"; the nearest command is {close[0]!r}" if close else ""
    given, message = "".join(f"{shlex.quote(option)} " for option in options), " ".join(words)
    end = "-- " if message.startswith("-") else ""
    quoted = "'" + message.replace("'", "'\"'\"'") + "'"
    ways = f"hypercode run {given}{end}{quoted}"
    if set(names) <= known["chat"]:
        ways += f", or in a chat: hypercode {given}{'' if ' ' in message and not end else '-- '}{quoted}"
    raise ConfigError(f"there is no command {word!r}{nearest}; to send it: {ways}")


def _parted(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options with their values, and the other words."""
    options, words, position = list[str](), list[str](), 0
    while position < len(argv) and argv[position] != "--":
        step = 2 if takes_value(argv[position]) else 1
        (options if _is_option(argv[position]) else words).extend(argv[position : position + step])
        position += step
    return options, [*words, *argv[position + 1 :]]


def _names(word: str) -> list[str]:
    """The options that a word gives: several with a single dash may stand together, the last with its value behind it."""
    if word.startswith("--"):
        return [word.partition("=")[0]]
    names = [f"-{letter}" for letter in word[1:]]
    last = next((place for place, name in enumerate(names) if name in VALUE_OPTIONS), len(names))
    return names[: last + 1]


def _known_options(tree: Any) -> dict[str, set[str]]:
    """The options of each command, those of its own commands included."""
    found, waiting = dict[str, set[str]](), [("", tree)]
    while waiting:
        name, command = waiting.pop()
        found.setdefault(name, {"-h", "--help"}).update(word for p in command.params for word in p.opts)
        waiting += [(name or sub, inner) for sub, inner in getattr(command, "commands", {}).items()]
    return found


def _with_resume(argv: Sequence[str]) -> list[str]:
    """The words with `-r`, whose value may be left out, as `--resume=ID` or `--resume=`.

    The word behind it is its value unless it is an option, a command, or has blanks in it and so is a message.
    """
    words, position, command = list[str](), 0, ""
    while position < len(argv):
        word, following = argv[position], argv[position + 1 : position + 2]
        position += 1
        if word == "--":
            return [*words, word, *argv[position:]]
        if word in ("-r", "--resume") and command in ("", "run", "chat"):
            value = "".join(following)
            mine = not value.startswith("-") and not any(map(str.isspace, value)) and (command or value not in COMMANDS)
            words.append(f"--resume={value if mine else ''}")
            position += bool(following and mine)
            continue
        words.append(word)
        if takes_value(word):
            words += following
            position += 1
        elif not command and not _is_option(word):
            command = word if word in COMMANDS else "chat"
    return words
