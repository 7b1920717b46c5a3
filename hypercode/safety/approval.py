"""Who may do what: the mode's table, and the gate that asks a person where the table says so.

`decide` is pure.  `Gate` is what the agent calls before each tool call: it returns None, or the refusal that the model
is told.  The order of a call is approval, then sandbox, then the attempt.
"""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypercode.loop_guard import TIMES
from hypercode.safety.decision import Decision, strictest
from hypercode.safety.needs import Needs, Passes, git_words, needs_of, reads_widely
from hypercode.safety.paths import FileGuard, Op
from hypercode.safety.rules import Rule, parse_rule

if TYPE_CHECKING:
    from hypercode.safety.command import Verdict

__all__ = ["Answer", "Asker", "Gate", "Mode", "Question", "Refusal", "decide", "is_command", "path_question"]


class Mode(StrEnum):
    """How much runs unasked; the contract's table is `decide`."""

    PLAN = "plan"
    ASK = "ask"
    EDITS = "edits"
    AUTO = "auto"


def decide(mode: Mode, effect: str, verdict: Decision, *, boxed: bool = False) -> Decision:
    """What the mode makes of a call: `effect` is read, edit or shell, `verdict` what path guard or command gate said.

    `boxed` says that the call runs inside the full sandbox.
    """
    if verdict is Decision.DENY or (verdict is Decision.ALWAYS_ASK and mode is not Mode.PLAN):
        return verdict
    if mode is Mode.PLAN and effect != "read":
        return Decision.AUTO if effect == "shell" and verdict is Decision.AUTO else Decision.DENY
    if mode is Mode.AUTO:
        return Decision.AUTO
    if effect == "edit":
        return verdict if mode is Mode.EDITS else strictest([Decision.ASK, verdict])
    if effect == "shell" and mode is Mode.EDITS and boxed:
        return Decision.AUTO
    return verdict


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked: the call, why, and the rule that "always" would save (None where none can).

    Not `judged`: only its tool knows what the call does; neither a path nor a command says so.
    """

    tool: str
    effect: str
    subject: str
    detail: str
    reason: str
    decision: Decision
    rule: str | None
    judged: bool = True

    @property
    def is_command(self) -> bool:
        """Whether the subject is a shell command."""
        return self.effect == "shell" and self.judged

    @property
    def remembers(self) -> bool:
        """Whether a yes can hold for longer than this once."""
        return self.decision is Decision.ASK and self.judged and (self.effect == "edit" or self.rule is not None)


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's word.  `remember` is once, session or always; `reason` goes to the model with a no."""

    yes: bool
    remember: str = "once"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call does not run, as an error kind and a text for the model; `hint` tells the person what would allow it."""

    kind: str
    text: str
    hint: str = ""
    by_person: bool = False

    @property
    def for_want(self) -> bool:
        """Whether a permission or a person was wanting; else a person said no, or the call is impossible whoever allows it."""
        return not self.by_person and self.kind in _FOR_WANT


_FOR_WANT = ("refused", "needs_confirmation")

Asker = Callable[[Question], Awaitable[Answer | None]]
"""Puts a question to a person; None means that there is nobody to ask."""


@dataclass(slots=True)
class Gate:
    """Decides each call by mode, rules, path guard and command gate, and asks where they say so.

    `save_rule` stores a rule for good.  `boxed` says whether commands run in the full sandbox, `readers_ask` that there should
    be one and is none, so that even what only reads asks; `boxing` waits until that is known.  `notify` tells the person about a refusal for want of an answer.  `passes` takes what an approved command may
    have beyond the box's usual.
    """

    files: FileGuard
    home: Path
    mode: Mode = Mode.ASK
    allow: list[Rule] = field(default_factory=list)
    deny: list[Rule] = field(default_factory=list)
    boxed: bool = False
    readers_ask: bool = False
    boxing: Callable[[], Awaitable[None]] | None = None
    passes: Passes = field(default_factory=Passes)
    ask: Asker | None = None
    save_rule: Callable[[str], None] | None = None
    notify: Callable[[str], None] | None = None
    _edits_allowed: bool = False
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(
        self, tool: str, effect: str, arguments: Mapping[str, Any], *, detail: str = "", confirm: str | None = None
    ) -> Refusal | None:
        """None where the call may run, else why not.

        `detail` is what the person is shown (a diff); `confirm` demands a yes in every mode and says why.
        """
        if is_command(tool, effect):
            return await self._shell(tool, str(arguments.get("command", "")))
        question = path_question(tool, effect, arguments)
        if question is None:
            return None if effect == "read" else await self._unjudged(tool, effect, arguments, detail, confirm)
        operation, target = question
        verdict = self.files.decide(operation, target)
        if verdict.kind == "is_directory" and effect == "read" and tool not in _OPERATIONS:
            operation = "ls"  # another tool than ours may read a folder
            verdict = self.files.decide(operation, target)
        decision = decide(self.mode, effect, verdict.decision)
        if effect == "edit" and self._edits_allowed and verdict.decision is Decision.AUTO and decision is Decision.ASK:
            decision = Decision.AUTO
        reason, kind = verdict.rule, verdict.kind
        if confirm and decision is not Decision.DENY:
            decision, reason, kind = Decision.ALWAYS_ASK, confirm, "needs_confirmation"
        refusal = await self._settle(Question(tool, effect, target, detail, reason, decision, None), kind=kind)
        if refusal is None:
            self.files.grant(operation, verdict.path)
        return refusal

    async def again(self, tool: str, effect: str, arguments: Mapping[str, Any], times: int) -> Refusal | None:
        """Whether a call that gave the same result that many times is wanted once more; asked in every mode."""
        known = arguments.get("command") if effect == "shell" else arguments.get("path")
        subject = known if isinstance(known, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        reason = (
            f"a loop? It has given the same result {times} times in this task; a yes lets it try {TIMES} times more"
        )
        judged = effect != "shell" or is_command(tool, effect)
        question = Question(tool, effect, subject, "", reason, Decision.ALWAYS_ASK, None, judged)
        return await self._settle(question, kind="loop")

    def classify(self, command: str, *, readers_ask: bool = False, mode: Mode | None = None) -> Verdict:
        """The class of a command's text under the rules of this session; with `readers_ask` only they make it `auto`.

        Told the `mode`, it leaves out the rules that allow something where that is `plan`, which changes nothing.
        """
        from hypercode.safety.command import (
            classify,
        )  # the grammar's tables take 50 ms, and not every session runs commands

        return classify(
            command,
            workspace=self.files.workspace,
            home=self.home,
            allow=() if mode is Mode.PLAN else self.allow,
            deny=self.deny,
            readers_ask=readers_ask,
        )

    async def _shell(self, tool: str, command: str) -> Refusal | None:
        if self.boxing is not None:
            await self.boxing()
        verdict = self.classify(command, mode=self.mode)
        decision = decide(self.mode, "shell", verdict.decision, boxed=self.boxed)
        if self.readers_ask and decision is Decision.AUTO:
            verdict = self.classify(command, readers_ask=True)
            decision = verdict.decision
        strict = _why(verdict)
        grant = verdict.grant if verdict.decision is Decision.ASK else None
        if decision is Decision.AUTO and self.mode is not Mode.AUTO and (program := self._git_would_run(verdict)):
            decision = Decision.DENY if self.mode is Mode.PLAN else Decision.ASK
            strict = f"the repository makes git run a program ({program}), and there is no sandbox"
        if decision is Decision.AUTO and not self.boxed and _widely(verdict) and (found := self._secrets()):
            decision = Decision.DENY if self.mode is Mode.PLAN else Decision.ASK
            strict = f"it may show secrets ({found}), and there is no sandbox to hide them"
        needs = needs_of(part.command for part in verdict.parts) if self.boxed else Needs()
        reason = f"{strict}; it gets {needs}" if needs != Needs() and decision is not Decision.AUTO else strict
        refusal = await self._settle(Question(tool, "shell", command, "", reason, decision, grant), kind="refused")
        # Unasked, all of a line gets what one part of it needs only if the rest of it is allowed or reads: it is one process.
        by_rule = verdict.decision is Decision.AUTO and any(p.rule.startswith("allow rule") for p in verdict.parts)
        if refusal is None and (by_rule or decision is not Decision.AUTO):
            self.passes.grant(command, needs)
        elif refusal is None and _widely(verdict):
            self.passes.grant(command, Needs(hidden=True))
        return refusal

    def _secrets(self) -> str:
        """The first files in the folders that usually hold secrets; empty where there are none."""
        from hypercode.safety.git_watch import Repositories

        walk = Repositories(self.files.roots)
        walk.places()
        found = walk.secrets()
        return ", ".join(os.path.relpath(path, self.files.workspace) for path in found[:3]) + ", …" * (len(found) > 3)

    def _git_would_run(self, verdict: Verdict) -> str:
        """What a git command that needs no question would run outside a box, because the repository's settings say so."""
        words = [git_words(part.command) for part in verdict.parts]
        if self.boxed or all(not w or any(rule.matches(w) for rule in self.allow) for w in words):
            return ""
        from hypercode.safety.git_watch import looking_runs

        return looking_runs(self.files.workspace)

    async def _unjudged(
        self, tool: str, effect: str, arguments: Mapping[str, Any], detail: str, confirm: str | None
    ) -> Refusal | None:
        """A call of a tool that is not the program's own: it asks, for it runs in no box whatever it does."""
        decision = decide(self.mode, effect, Decision.ASK)
        if decision is Decision.AUTO and self.boxed:
            decision = Decision.ASK
        reason, kind = f"no tool of hypercode's own; it may {_MAY[effect]}, outside the sandbox", "refused"
        if confirm and decision is not Decision.DENY:
            decision, reason, kind = Decision.ALWAYS_ASK, confirm, "needs_confirmation"
        subject = json.dumps(arguments, ensure_ascii=False, default=str)
        return await self._settle(
            Question(tool, effect, subject, detail, reason, decision, None, judged=False), kind=kind
        )

    async def _settle(self, question: Question, *, kind: str) -> Refusal | None:
        if question.decision is Decision.AUTO:
            return None
        if question.decision is Decision.DENY and kind not in _FOR_WANT:
            return Refusal(kind, question.reason)
        if question.decision is Decision.DENY:
            return self._refuse(kind, *self._denial(question))
        async with self._asking:
            answer = await self.ask(question) if self.ask else None
        if answer is None:
            text = f"needs a person's yes and there is nobody to ask ({question.reason})"
            return self._refuse(kind, text, self._hint(question))
        if not answer.yes:
            reason = f": {answer.reason}" if answer.reason else ""
            return Refusal(kind, f"the user said no{reason}", by_person=True)
        self._remember(question, answer)
        return None

    def _refuse(self, kind: str, text: str, hint: str) -> Refusal:
        if self.notify:
            self.notify(hint)
        return Refusal(kind, text, hint)

    def _denial(self, question: Question) -> tuple[str, str]:
        subject = question.subject if len(question.subject) <= 200 else question.subject[:200] + "…"
        if self.mode is Mode.PLAN and question.effect != "read":
            way = "--mode edits or auto may allow it" if self.ask is None else "Shift-Tab and /mode change the mode"
            return (
                "plan mode: nothing may be changed. Look around with the reading tools and answer with a plan",
                f"Refused in plan mode: {question.tool} {subject!r}. {way}.",
            )
        return f"not allowed ({question.reason})", f"Refused: {question.tool} {subject!r}: {question.reason}."

    def _hint(self, question: Question) -> str:
        subject = question.subject if len(question.subject) <= 200 else question.subject[:200] + "…"
        text = f"Refused for want of a person: {question.tool} {subject!r} ({question.reason})."
        if question.decision is Decision.ALWAYS_ASK:
            return f"{text} No flag allows this; it needs a yes each time, in the chat."
        if not question.judged or (self.readers_ask and question.is_command and not question.rule):
            return f"{text} --mode auto --no-sandbox would have allowed it."
        if question.effect == "edit":
            return f"{text} --mode edits would have allowed it."
        if question.rule:
            return f"{text} --allow {question.rule!r} would have allowed it."
        return f"{text} --mode auto would have allowed it."

    def _remember(self, question: Question, answer: Answer) -> None:
        if answer.remember == "once" or not question.remembers:
            return
        if question.effect == "edit":
            self._edits_allowed = True
        elif question.rule:
            self.allow.append(parse_rule(question.rule))
            if answer.remember == "always" and self.save_rule:
                self.save_rule(question.rule)


def _why(verdict: Verdict) -> str:
    """What a line is asked for or denied: the first reason, or each of the dangers in it."""
    rules = list(dict.fromkeys(part.rule for part in verdict.parts if part.decision is verdict.decision))
    shown = rules[: 1 if verdict.decision is Decision.ASK else _REASONS]
    more = f"; {len(rules) - _REASONS} more" if len(shown) == _REASONS < len(rules) else ""
    return "; ".join(shown) + more


def _widely(verdict: Verdict) -> bool:
    """Whether a line that only reads may read files of secrets that it does not name."""
    return verdict.decision is Decision.AUTO and any(reads_widely(part.command) for part in verdict.parts)


_OPERATIONS: Sequence[str] = ("read", "write", "edit", "ls", "glob", "grep")
_REASONS = 3
_MAY = {"edit": "change files", "shell": "run programs"}


def is_command(tool: str, effect: str) -> bool:
    """Whether the call's `command` is a shell command that the gate can judge; nobody knows that of another tool's."""
    return effect == "shell" and tool == "bash"


def path_question(tool: str, effect: str, arguments: Mapping[str, Any]) -> tuple[Op, str] | None:
    """What a call asks of the file guard, an operation and a path.

    None for a call that names no path: what it does is told by its tool's effect alone.
    """
    path = arguments.get("path", "." if tool in _OPERATIONS else None)
    if effect == "shell" or not isinstance(path, str | os.PathLike):
        return None
    target = os.fspath(path)
    if tool == "glob":  # a pattern that is looked for below a folder may lead out of it
        target = posixpath.join(target, str(arguments["pattern"]))
    return _operation(tool, effect), target


def _operation(tool: str, effect: str) -> Any:
    if tool in _OPERATIONS:
        return tool
    return "write" if effect == "edit" else "read"
