"""`hypercode policy`: what would be allowed, and why.  Runs nothing, changes nothing, asks nobody."""

from __future__ import annotations

import json
import shlex
import sys
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hypercode.config import Config, Folders
from hypercode.errors import ConfigError, ToolError
from hypercode.logfile import open_log
from hypercode.memory import sessions
from hypercode.memory.history import load
from hypercode.memory.records import Record
from hypercode.messages import parse_arguments
from hypercode.parts import configuration, gate_for
from hypercode.safety.approval import Gate, Mode, decide, is_command, path_question
from hypercode.safety.command import as_json as verdict_json
from hypercode.safety.decision import Decision
from hypercode.safety.paths import Op
from hypercode.tools.base import Toolbox
from hypercode.ui.clean import clean
from hypercode.ui.headless import Output, write_line

__all__ = ["Rehearsed", "rehearse", "replay", "show_command", "show_path"]

_OWED = "unknown"  # the kind of a result that a crash kept out of the file and that was added later


def show_command(
    config: Config, words: Sequence[str], *, cwd: Path, environ: Mapping[str, str], with_mode: bool, as_json: bool
) -> None:
    """Print the class of a command, one text or its words; with a mode, what that mode makes of it outside a sandbox."""
    command = words[0] if len(words) == 1 else shlex.join(words)
    mode = Mode(config.mode) if with_mode else None
    verdict = gate_for(config, cwd=cwd, environ=environ).classify(command, mode=mode)
    answer = verdict_json(verdict)
    if mode is not None:
        answer["decision"] = str(decide(mode, "shell", verdict.decision))
    if as_json:
        _print(json.dumps(answer))
        return
    _print(f"{answer['decision']}")
    for part in verdict.parts:
        _print(f"  {part.decision:<10} {part.command}   ({part.rule})")
    if answer["decision"] != str(verdict.decision):
        _print(f"  mode {config.mode} makes {answer['decision']} of {verdict.decision}")
    if verdict.grant and answer["decision"] != str(Decision.AUTO) and mode is not Mode.PLAN:
        _print(f"  --allow {verdict.grant!r} would let it pass")


def show_path(
    config: Config, operation: str, path: str, *, cwd: Path, environ: Mapping[str, str], as_json: bool
) -> None:
    """Print what the file guard says of a path; `auto` for a write means: only the usual question of the mode."""
    operations = typing.get_args(Op)
    if operation not in operations:
        raise ConfigError(f"must be one of {', '.join(operations)}, not {operation!r}", key="operation")
    verdict = gate_for(config, cwd=cwd, environ=environ).files.decide(operation, path)  # type: ignore[arg-type]
    if as_json:
        _print(json.dumps({"decision": str(verdict.decision), "rule": verdict.rule, "path": str(verdict.path)}))
    else:
        _print(f"{verdict.decision}  {verdict.path}   ({verdict.rule})")


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What today's rules say to one call of a saved session.

    `decision` is the mode's, outside a sandbox; None for a call of no tool that there is, or without usable arguments.  `rule`
    is the reason in words, `grant` the narrowest allow rule that would let a command pass, `flag` the option that would
    let the call pass unasked: that rule's, else the least permissive mode's; None where none would.
    """

    call_id: str
    tool: str
    subject: str
    decision: Decision | None
    rule: str
    grant: str | None = None
    flag: str | None = None


def replay(name: str, *, cwd: Path, environ: Mapping[str, str], as_json: bool, **flags: Any) -> None:
    """Print what today's rules would have asked for each call of a saved session, in the folder it belongs to.

    `flags` are rules and mode over the configuration's.  Calls that a rewind left behind are among them; redacted words
    stay redacted.  Raises ConfigError.
    """
    loaded = load(sessions.find(Folders.of(environ).state, cwd, name))
    folder = Path(loaded.cwd) if loaded.cwd and Path(loaded.cwd).is_dir() else cwd
    notices = [n for n in loaded.notices if "damaged" in n or "empty" in n]
    if loaded.cwd and folder != Path(loaded.cwd):
        notices.append(f"{loaded.cwd}, where the session was, is not there: judged as in {folder}.")
    config = configuration(environ, folder, **flags)
    gate = gate_for(config, cwd=folder, environ=environ)
    intents = list(_recorded(loaded.records))
    tools, left_out = _tools_for(intents, gate, environ)
    calls = [rehearse(gate, tools, intent) for intent in intents]
    for notice in [*notices, *config.notices, *left_out]:
        write_line(sys.stderr, f"warning: {clean(notice)}")
    out = Output(sys.stdout, lambda: None)
    if as_json:
        about = {"session": loaded.session, "cwd": str(folder), "mode": str(gate.mode)}
        out.write(json.dumps(about | {"calls": [asdict(call) for call in calls]}, indent=2) + "\n")
    else:
        out.write("".join(f"{line}\n" for line in _table(calls, gate.mode)))


def _recorded(records: Iterable[Record]) -> Iterator[Record]:
    """The calls of a session: those that were taken up, and those that a crash kept from it, as while they were asked about."""
    waiting: dict[str, Record] = {}
    for record in records:
        message = record.get("message")
        message = message if isinstance(message, dict) else {}
        if record["type"] == "assistant":
            yield from waiting.values()
            waiting = {call["call_id"]: call for call in _asked_for(message)}
        elif record["type"] == "intent":
            waiting.pop(str(record.get("call_id")), None)
            yield record
        elif record["type"] == "result" and record.get("kind") != _OWED:
            waiting.pop(str(message.get("tool_call_id")), None)  # it was refused before anybody could be asked
    yield from waiting.values()


def _asked_for(message: Mapping[str, Any]) -> Iterator[Record]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(text := function.get("arguments"), str):
            arguments = parse_arguments(text)
            yield {
                "type": "intent",
                "call_id": str(call.get("id")),
                "name": function.get("name"),
                "arguments": arguments,
            }


def _tools_for(
    intents: Iterable[Mapping[str, Any]], gate: Gate, environ: Mapping[str, str]
) -> tuple[Toolbox, list[str]]:
    """The tools as a session has them, and what is to be said of them; those of packages only where there are calls of them."""
    tools = Toolbox.discover()
    known = {*tools.names, "skill"}
    if all(intent.get("name") in known for intent in intents):
        return tools, []
    from hypercode.extensions import own_tools

    with open_log(environ, debug=False):
        own, left_out = own_tools(known, gate.files.roots)
    return tools.plus(*own), left_out


def rehearse(gate: Gate, tools: Toolbox, intent: Mapping[str, Any]) -> Rehearsed:
    """Judge one recorded call as the gate would, with nobody to ask.  Never raises."""
    ident, tool, arguments = str(intent.get("call_id")), str(intent.get("name")), intent.get("arguments")
    effect = "read" if tool == "skill" else tools.effect(tool)
    subject = _subject(arguments)
    if effect is None:
        return Rehearsed(ident, tool, subject, None, "there is no such tool")
    unusable = Rehearsed(ident, tool, subject, None, "its arguments are none that the tool takes")
    if not isinstance(arguments, dict):
        return unusable
    try:
        values = arguments if tool == "skill" else tools.find(tool).validate(arguments)
    except ToolError:
        return unusable
    if is_command(tool, effect):
        verdict = gate.classify(str(values.get("command", "")), mode=gate.mode)
        rule = "; ".join(dict.fromkeys(p.rule for p in verdict.parts if p.decision is verdict.decision))
        return _rehearsed(gate.mode, Rehearsed(ident, tool, subject, verdict.decision, rule, verdict.grant), effect)
    question = path_question(tool, effect, values)
    if question is None and effect == "read":
        return Rehearsed(ident, tool, subject, Decision.AUTO, "it names no path")
    if question is None:
        rule = "no tool of hypercode's own, and in no sandbox"
        call = _rehearsed(gate.mode, Rehearsed(ident, tool, subject, Decision.ASK, rule), effect)
        return replace(call, flag="--mode auto --no-sandbox" if call.flag else None)
    found = gate.files.decide(*question)
    if found.kind == "is_directory" and effect == "read" and question[0] != tool:
        found = gate.files.decide("ls", question[1])  # another tool than ours may read a folder
    return _rehearsed(gate.mode, Rehearsed(ident, tool, question[1], found.decision, found.rule), effect)


def _subject(arguments: Any) -> str:
    """What a call is about: its command or path, else all its arguments."""
    known = [arguments[key] for key in ("command", "path") if key in arguments] if isinstance(arguments, dict) else []
    return known[0] if known and isinstance(known[0], str) else json.dumps(arguments, ensure_ascii=False)


def _rehearsed(mode: Mode, call: Rehearsed, effect: str) -> Rehearsed:
    """What the mode makes of a judged call, and what would let it pass."""
    verdict = call.decision or Decision.DENY
    decision, rule = decide(mode, effect, verdict), call.rule
    if decision is Decision.AUTO:
        return replace(call, decision=decision, grant=None)
    if verdict is Decision.AUTO:
        rule = "nothing is changed in plan mode" if mode is Mode.PLAN else f"each edit is asked for in mode {mode}"
    wider = (m for m in (Mode.ASK, Mode.EDITS, Mode.AUTO) if decide(m, effect, verdict) is Decision.AUTO)
    grant = call.grant if mode is not Mode.PLAN else None  # there no rule allows
    flag = f"--allow {shlex.quote(grant)}" if grant else next((f"--mode {m}" for m in wider), None)
    return replace(call, decision=decision, rule=rule, grant=grant, flag=flag)


def _table(calls: list[Rehearsed], mode: Mode) -> list[str]:
    lines = []
    for call in calls:
        first, *rest = clean(call.subject, "approval").split("\n")
        lines.append(f"{call.decision or 'not run':<10}  {clean(call.tool, 'filename'):<5}  {first}".rstrip())
        lines += [f"                   {line}" for line in rest]
        if call.decision is not Decision.AUTO:
            lines.append(f"            {clean(call.rule, 'filename')}")
            lines += [f"            {clean(call.flag, 'filename')} would let it pass"] if call.flag else []
    counts = Counter(str(call.decision or "not run") for call in calls)
    summary = ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "none"
    return [*lines, f"{len(calls)} calls in mode {mode}, outside a sandbox: {summary}"]


def _print(text: str) -> None:
    print(clean(text))  # noqa: T201
