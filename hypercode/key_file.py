"""Keeping a key in the user's configuration file, with everything else in it as it was."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from hypercode.errors import ConfigError
from hypercode.safety.private_file import Unusable, private_folder, read_private, replace_private

__all__ = ["keep_key"]

_LIMIT = 1 << 20
_SETTING = re.compile(r"^[ \t]*(?:#[ \t]*)?api_key[ \t]*=.*$", re.M)
_TABLE = re.compile(r"^[ \t]*\[", re.M)


def keep_key(file: Path, key: str) -> None:
    """Set `api_key` in the file, which is made where it is missing and is for the user alone afterwards.

    Raises ConfigError where that cannot be done without touching anything else; the file is then as it was.
    """
    try:
        private_folder(file.parent)
        target = file.resolve()  # a file that is kept elsewhere and linked here stays a link
        old = (read_private(target, _LIMIT) or b"").decode()
        new = _with_key(old, key)
        if new is None:
            raise ConfigError(
                f'put api_key = "…" into it yourself, above the first [table]: {_why(old)}', file=str(file)
            )
        replace_private(target, new.encode())
    except (Unusable, UnicodeDecodeError) as error:
        raise ConfigError(f"the key was not kept: the file {error}", file=str(file)) from None
    except OSError as error:
        raise ConfigError(f"the key was not kept ({error.strerror})", file=str(file)) from None


def _with_key(text: str, key: str) -> str | None:
    """The text with the key in it; None where that would change anything else."""
    line = f"api_key = {json.dumps(key)}"
    table = _TABLE.search(text)
    end = table.start() if table else len(text)
    place = _SETTING.search(text, 0, end)
    new = f"{text[: place.start()]}{line}{text[place.end() :]}" if place else f"{line}\n{text}"
    try:
        before, after = tomllib.loads(text), tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        return None
    return new if after == {**before, "api_key": key} else None


def _why(text: str) -> str:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"it is not valid TOML ({error})"
    return "it is laid out so that a line cannot be changed safely"
