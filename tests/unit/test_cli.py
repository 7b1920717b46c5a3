"""The words of a command line, put in order."""

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
        (["--cwd", "d", "sessions", "list"], ["sessions", "--cwd", "d", "list"]),
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


def test_every_option_with_a_value_is_known_to_arrange():
    """Otherwise its value would be taken for the command."""
    commands = typer.main.get_command(cli.application).commands
    options = [p for name in ("run", "chat") for p in commands[name].params if p.param_type_name == "option"]
    assert {word for p in options if not p.is_flag for word in p.opts} == set(VALUE_OPTIONS)


def test_every_command_is_known_to_arrange():
    names = {g.name for g in cli.application.registered_groups}
    names |= {c.callback.__name__ for c in cli.application.registered_commands if not c.hidden}
    assert names == set(cli.COMMANDS)
