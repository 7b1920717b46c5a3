"""The TOML files that settings are read from."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from hypercode.errors import ConfigError

__all__ = ["parse_toml", "read_toml"]

_FILE_LIMIT = 1 << 20


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; an absent file is empty.  Never hangs on a device, never reads more than 1 MiB.

    Raises ConfigError, which names the file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", file=str(path)) from None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError("is not a regular file", file=str(path))
        if info.st_size > _FILE_LIMIT:
            raise ConfigError("is larger than 1 MiB", file=str(path))
        data = os.read(descriptor, _FILE_LIMIT)
    finally:
        os.close(descriptor)
    return parse_toml(data, path)


def parse_toml(data: bytes, path: Path) -> dict[str, Any]:
    """The tables in the content of the file at a path.  Raises ConfigError where it is no TOML."""
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        readable = "".join(c if c.isprintable() else "?" for c in str(error))
        raise ConfigError(f"is not valid TOML: {readable}", file=str(path)) from None
