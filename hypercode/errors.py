"""The exceptions of hypercode.

::

    HypercodeError
    ├─ ConfigError(file, key)       wrong use or configuration; exit 2, one line
    ├─ ModelError                   the turn failed; the session lives
    │  ├─ AuthError                 the key was refused; never retried
    │  ├─ QuotaError                no credits, or a quota used up; never retried
    │  ├─ RequestRejected           the server will not answer this request; never retried
    │  ├─ ContextOverflow           the request is longer than the model's window
    │  ├─ ModelUnavailable          a passing failure; retried while nothing was shown
    │  └─ StreamInterrupted         the answer broke off or fell silent before its end
    ├─ LimitReached                 turns, cost, time, or going in circles
    └─ ToolError(kind)              its text is for the model; never ends a turn

Who must hear of it decides the class: the model (`ToolError`), the person (`ConfigError`, `ModelError`,
`LimitReached`), or the developer (anything else: traceback to the log file, one line on the screen).
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuthError",
    "ConfigError",
    "ContextOverflow",
    "HypercodeError",
    "LimitReached",
    "ModelError",
    "ModelUnavailable",
    "QuotaError",
    "RequestRejected",
    "StreamInterrupted",
    "ToolError",
]


class HypercodeError(Exception):
    """Everything that hypercode raises on purpose."""


class ConfigError(HypercodeError):
    """Wrong use or configuration; the text is one line that says what to do.

    `file` and `key` name the place where there is one.
    """

    def __init__(self, message: str, *, file: str | None = None, key: str | None = None) -> None:
        option = file if file and file.startswith("--") else None  # a flag names its key already
        where = option or ": ".join(part for part in (file, key) if part)
        super().__init__(f"{where}: {message}" if where else message)
        self.file = file
        self.key = key


class ModelError(HypercodeError):
    """A turn failed.  The text is for the person: who refused, what it said, what to do.

    `status` is the HTTP status where there was one, `provider` the upstream provider a gateway named, `retry_after`
    seconds the server asked to wait.
    """

    kind = "model"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        provider: str | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.provider = provider
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable
        if kind is not None:
            self.kind = kind

    def as_dict(self) -> dict[str, Any]:
        """The `error` object of the event schema."""
        return {
            "kind": self.kind,
            "message": str(self),
            "retryable": self.retryable,
            "status": self.status,
            "provider": self.provider,
        }


class AuthError(ModelError):
    """The server refused the key."""

    kind = "auth"


class QuotaError(ModelError):
    """No credits left, or a quota is used up."""

    kind = "quota"


class RequestRejected(ModelError):
    """The server will not answer this request, however often it is sent."""

    kind = "rejected"


class ContextOverflow(ModelError):
    """The request is longer than the model's context window."""

    kind = "context_overflow"


class ModelUnavailable(ModelError):
    """A passing failure: overload, rate limit, connection."""

    kind = "unavailable"
    retryable = True


class StreamInterrupted(ModelError):
    """The answer began and then broke off or fell silent, without a finish reason or `[DONE]`."""

    kind = "interrupted"
    retryable = True


class LimitReached(HypercodeError):
    """A limit was reached.  `kind` is `turns`, `cost` or `time`, or `loop`: the model repeats itself."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def as_dict(self) -> dict[str, Any]:
        """The `error` object of the event schema."""
        return {
            "kind": f"limit_{self.kind}",
            "message": str(self),
            "retryable": False,
            "status": None,
            "provider": None,
        }


class ToolError(HypercodeError):
    """A tool could not do what it was asked; the text is for the model.

    `kind` is a short stable word (`not_found`, `ambiguous`, `refused`, …) and comes first in what the model reads.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
