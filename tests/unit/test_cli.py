"""The words of a command line, put in order."""

import shlex

import pytest
import typer

from hypercode import cli
from hypercode.cli import VALUE_OPTIONS, arrange
from hypercode.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], ["chat"]),
        (["--help"], ["--help"]),
        (["--install-completion"], ["--install-completion"]),
        (["run", "x"], ["run", "x"]),
        (["-m", "x/y", "run", "task", "--plain"], ["run", "-m", "x/y", "task", "--plain"]),
        (["--no-sandbox", "--mode=auto", "run", "t"], ["run", "--no-sandbox", "--mode=auto", "t"]),
        (["a sentence with spaces"], ["chat", "a sentence with spaces"]),
        (["--plain", "a sentence"], ["chat", "--plain", "a sentence"]),
        (["-m", "run"], ["chat", "-m", "run"]),
        (["--", "run"], ["chat", "--", "run"]),
        (["run", "--", "--config=x"], ["run", "--", "--config=x"]),
        (["überprüfe"], ["chat", "überprüfe"]),
        (["-c"], ["chat", "-c"]),
        (["-r"], ["chat", "--resume="]),
        (["-r", "abc123"], ["chat", "--resume=abc123"]),
        (["--resume", "abc123", "--plain"], ["chat", "--resume=abc123", "--plain"]),
        (["-r", "--plain"], ["chat", "--resume=", "--plain"]),
        (["-r", "fix the bug"], ["chat", "--resume=", "fix the bug"]),
        (["-r", "run", "task"], ["run", "--resume=", "task"]),
        (["run", "-r", "abc", "a task"], ["run", "--resume=abc", "a task"]),
        (["run", "a task", "-r"], ["run", "a task", "--resume="]),
        (["run", "-r", "-m", "x/y", "a task"], ["run", "--resume=", "-m", "x/y", "a task"]),
        (["run", "-m", "-r", "a task"], ["run", "-m", "-r", "a task"]),
        (["a sentence here", "-r"], ["chat", "a sentence here", "--resume="]),
        (["run", "-r", "run"], ["run", "--resume=run"]),
        (["run", "--", "-r", "x"], ["run", "--", "-r", "x"]),
        (["policy", "test", "-r"], ["policy", "test", "-r"]),
        (["--cwd", "d", "sessions", "list"], ["sessions", "list", "--cwd", "d"]),
        (["--json", "sessions", "list"], ["sessions", "list", "--json"]),
        (["sessions", "--json", "list"], ["sessions", "list", "--json"]),
        (["--cwd", "d", "sessions", "--json", "list", "--all"], ["sessions", "list", "--cwd", "d", "--json", "--all"]),
        (["--format", "md", "sessions", "export", "x"], ["sessions", "export", "--format", "md", "x"]),
        (["--json", "sessions"], ["sessions", "--json"]),
        (["sessions", "--help"], ["sessions", "--help"]),
        (["--profile", "p", "config", "show"], ["config", "show", "--profile", "p"]),
        (["--profile", "p", "config"], ["config", "show", "--profile", "p"]),
        (["config"], ["config"]),
        (["config", "--help"], ["config", "--help"]),
        (["--json", "policy", "test", "--", "ls"], ["policy", "test", "--json", "--", "ls"]),
        (["--mode", "auto", "policy", "test", "--", "test"], ["policy", "test", "--mode", "auto", "--", "test"]),
        (["policy", "--json", "path", "read", "x"], ["policy", "path", "--json", "read", "x"]),
        (["policy", "--", "test"], ["policy", "--", "test"]),
        (["sessions", "--nosuch", "list"], ["sessions", "list", "--nosuch"]),
        (["-cm", "foo", "hi there"], ["chat", "-cm", "foo", "hi there"]),
        (["-cm", "foo", "run", "task"], ["run", "-cm", "foo", "task"]),
        (["-cmrun", "run", "task"], ["run", "-cmrun", "task"]),
        (["-hm", "foo", "sessions", "list"], ["sessions", "list", "-hm", "foo"]),
        (["--", "--install-completion"], ["chat", "--", "--install-completion"]),
        (["run", "--", "--show-completion"], ["run", "--", "--show-completion"]),
        (["run", "--show-completion"], ["run", "--show-completion"]),
        (["--show-completion=bash"], ["--show-completion=bash"]),
        (["--show-completions", "x y"], ["chat", "--show-completions", "x y"]),
        (["--show-completion does not work, why?"], ["chat", "--", "--show-completion does not work, why?"]),
        (["--plain is what?", "--plain"], ["chat", "--plain", "--", "--plain is what?"]),
        (["run", "-m is what?", "-m", "x/y"], ["run", "-m", "x/y", "--", "-m is what?"]),
        (["- one\n- two", "-c"], ["chat", "-c", "--", "- one\n- two"]),
        (["--cwd=/a b", "-mx y", "a sentence"], ["chat", "--cwd=/a b", "-mx y", "a sentence"]),
        (["--cwd", "-a b", "a sentence"], ["chat", "--cwd", "-a b", "a sentence"]),
        (["--speed", "3", "replay", "abc"], ["replay", "--speed", "3", "abc"]),
        (["--version", "run"], ["--version", "run"]),
        (["chat", "hello"], ["chat", "hello"]),
    ],
)
def test_arrange(given, wanted):
    assert arrange(given) == wanted


@pytest.mark.parametrize(("word", "nearest"), [("runn", "'run'"), ("confg", "'config'"), ("frobnicate", "no command")])
def test_a_single_unknown_word_is_no_prompt(word, nearest):
    with pytest.raises(ConfigError) as caught:
        arrange([word])
    assert nearest in str(caught.value)
    assert f"to send it: hypercode run {word!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words", "task", "chat"),
    [
        ("hello", "hello", "run 'hello'", "-- 'hello'"),
        ("-c hi", "hi", "run -c 'hi'", "-c -- 'hi'"),
        ("--mode plan hello", "hello", "run --mode plan 'hello'", "--mode plan -- 'hello'"),
        ("hello --plain -m x/y", "hello", "run --plain -m x/y 'hello'", "--plain -m x/y -- 'hello'"),
        ("explain this", "explain", "run 'explain this'", "'explain this'"),
        ("explain this --plain now", "explain", "run --plain 'explain this now'", "--plain 'explain this now'"),
        ("say -- -x", "say", "run 'say -x'", "'say -x'"),
        ('it"s', 'it"s', "run 'it\"s'", "-- 'it\"s'"),
        ("it's", "it's", """run 'it'"'"'s'""", """-- 'it'"'"'s'"""),
        ("--output json hello", "hello", "run --output json 'hello'", ""),
        ("-cm x/y hello", "hello", "run -cm x/y 'hello'", "-cm x/y -- 'hello'"),
        ("-cmx/y hello", "hello", "run -cmx/y 'hello'", "-cmx/y -- 'hello'"),
    ],
)
def test_both_ways_to_send_what_is_no_command(given, words, task, chat):
    """With all the words and options; and what is proposed is taken."""
    with pytest.raises(ConfigError) as caught:
        arrange(given.split())
    ways = f"hypercode {task}" + (f", or in a chat: hypercode {chat}" if chat else "")
    assert str(caught.value) == f"there is no command {words!r}; to send it: {ways}"
    assert arrange(shlex.split(task))[0] == "run"
    assert not chat or arrange(shlex.split(chat))[0] == "chat"


@pytest.mark.parametrize(
    "given", ["--foo hi", "hi --foo", "--foo=3 hi", "-q hi", "-cq hi", "hi -cq", "--foo explain this"]
)
def test_an_unknown_option_is_said_before_an_unknown_word(given):
    words = arrange(given.split())
    assert words == ["chat", *given.split()]
    with pytest.raises(typer.BadParameter.__base__, match=r"No such option: (--foo|-q)"):
        typer.main.get_command(cli.application).commands["chat"].make_context("chat", words[1:])


def test_every_option_with_a_value_is_known_to_arrange():
    """Otherwise its value would be taken for the command."""
    waiting, found = [typer.main.get_command(cli.application)], set()
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        options = [p for p in command.params if p.param_type_name == "option" and not p.is_flag]
        found |= {word for p in options for word in p.opts}
    assert found - {"--install-completion", "--show-completion"} == set(VALUE_OPTIONS)


def test_every_command_is_known_to_arrange():
    names = {g.name for g in cli.application.registered_groups}
    names |= {c.callback.__name__ for c in cli.application.registered_commands if not c.hidden}
    assert names == set(cli.COMMANDS)
