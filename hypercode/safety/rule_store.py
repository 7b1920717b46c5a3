"""The rules a person has given for good, by project, in the person's own folder; a project cannot bring any."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from hypercode.errors import ConfigError
from hypercode.safety.private_file import Unusable, locked, private_folder, put_aside, read_private, replace_private
from hypercode.safety.rules import parse_rule

__all__ = ["MOST_RULES", "RuleStore"]

MOST_RULES = 1000
"""How many rules of one project are kept."""

_LIMIT = 1 << 20
_Rules = list[str]


class RuleStore:
    """Allow rules, one file a project, named by the hash of the project's resolved path.

    `notices` says which files cannot be used; then the project has no stored rules.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.notices: _Rules = []

    def allow(self, workspace: Path) -> _Rules:
        """The stored rules of a project, oldest first."""
        path = self._path(workspace)
        try:
            return self._usable(path, *_parsed(read_private(path, _LIMIT)), real=_real(workspace))
        except Unusable as problem:
            self._tell(f"{path} {problem}: this project has no stored rules now.")
            return []

    def add(self, workspace: Path, rule: str) -> bool:
        """Store a rule; whether it is new.  Raises ValueError for what is no rule, ConfigError where it cannot be kept."""
        text = str(parse_rule(rule))
        return self._change(workspace, lambda rules: rules if text in rules else [*rules, text])

    def remove(self, workspace: Path, rule: str) -> bool:
        """Forget a rule; whether there was one.  Raises ConfigError."""
        return self._change(workspace, lambda rules: [r for r in rules if r != rule and r != _plain(rule)])

    def list(self) -> dict[Path, _Rules]:
        """The stored rules of all projects, by resolved path."""
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                workspace, rules = _parsed(read_private(path, _LIMIT))
                if path != self._path(Path(workspace)):
                    raise Unusable("belongs to another project by its name")
                found[Path(workspace)] = self._usable(path, workspace, rules, real=workspace)
            except Unusable as problem:
                self._tell(f"{path} {problem}: its rules are not used.")
        return found

    def _path(self, workspace: Path) -> Path:
        return self._folder / f"{sha256(os.fsencode(_real(workspace))).hexdigest()[:32]}.json"

    def _tell(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _usable(self, path: Path, workspace: str, rules: _Rules, *, real: str) -> _Rules:
        """The rules that are rules.  Raises Unusable for the file of another project."""
        if rules and workspace != real:
            raise Unusable("belongs to another project")
        kept = [rule for rule in rules if _plain(rule)]
        if len(kept) < len(rules):
            self._tell(f"{path}: {len(rules) - len(kept)} of its rules cannot be used and are passed over.")
        return kept

    def _change(self, workspace: Path, change: Callable[[_Rules], _Rules]) -> bool:
        path, real = self._path(workspace), _real(workspace)
        try:
            private_folder(self._folder)
            with locked(self._folder / ".lock"):
                before = self._present(path, real)
                after = change(before)
                if after == before:
                    return False
                if len(after) > MOST_RULES:
                    raise ConfigError(f"{MOST_RULES} rules are kept for a project; remove some first", file=str(path))
                content = {"version": 1, "workspace": real, "allow": after}
                replace_private(path, json.dumps(content, indent=1).encode("ascii"))
        except OSError as error:
            raise ConfigError(f"cannot be written ({error.strerror}); nothing was changed", file=str(path)) from None
        return True

    def _present(self, path: Path, real: str) -> _Rules:
        try:
            return self._usable(path, *_parsed(read_private(path, _LIMIT)), real=real)
        except Unusable as problem:
            place = put_aside(path)
            self._tell(f"{path} {problem}; it was moved to {place.name} and a new one was begun.")
            return []


def _real(workspace: Path) -> str:
    return os.path.realpath(workspace)


def _plain(rule: str) -> str:
    """The rule as it is stored; empty for what is no rule."""
    try:
        return str(parse_rule(rule))
    except ValueError:
        return ""


def _parsed(data: bytes | None) -> tuple[str, list[str]]:
    """The workspace and rules of a file.  Raises Unusable for anything that this program would not have written."""
    if data is None:
        return "", []
    try:
        content = json.loads(data)
        workspace, rules = content["workspace"], content["allow"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise Unusable("is damaged") from None
    texts = isinstance(workspace, str) and isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)
    if not texts or content.get("version") != 1:
        raise Unusable("is damaged, or from a newer hypercode")
    return workspace, rules
