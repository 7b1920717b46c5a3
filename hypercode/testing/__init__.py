"""Tools for testing clients of model servers: `FaultServer`, also as `python -m hypercode.testing.server`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypercode.testing.server import FaultServer

__all__ = ["FaultServer"]


def __getattr__(name: str) -> Any:
    if name == "FaultServer":
        from hypercode.testing.server import FaultServer

        return FaultServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
