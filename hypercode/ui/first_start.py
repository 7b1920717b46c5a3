"""The first start without a key: three ways to a model, and then straight into the conversation.

Only at a terminal; everybody else gets the one line that says what to set.
"""

from __future__ import annotations

import asyncio
import getpass
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hypercode.config import Config, Folders
from hypercode.errors import AuthError, ConfigError, ModelError
from hypercode.key_file import keep_key
from hypercode.llm.quirks import host_of, is_openrouter
from hypercode.ui.clean import clean
from hypercode.ui.headless import Output, laid_out

__all__ = ["check_key", "key_in", "settle"]

_SECONDS = 5.0  # that the check of a key may take
_KEYS_PAGE = "https://openrouter.ai/keys"
_ASSIGNMENT = re.compile(r"^(?:export\s+|set\s+)?\w+\s*=\s*")


def settle(config: Config, environ: Mapping[str, str]) -> bool:
    """Ask how to get to a model and put the answer into the configuration; False where the person leaves instead.

    Without a terminal nobody is asked, and what is missing stays so.
    """
    return not (sys.stdin.isatty() and sys.stdout.isatty()) or _FirstStart(config, environ).run()


def key_in(text: str) -> str | None:
    """The key in what was pasted: without quotes, blanks or an `export NAME=` around it; None where there is none."""
    key = _ASSIGNMENT.sub("", text.strip()).strip().strip("\"'").strip()
    return key if len(key) >= 8 and key.isascii() and key.isprintable() and " " not in key else None


async def check_key(get_json: Callable[[str], Awaitable[dict[str, Any]]]) -> tuple[bool, str]:
    """Whether a key may be kept, by OpenRouter's `GET /key` (https://openrouter.ai/docs/api-reference/api-keys/get-current-api-key).

    Only a refusal keeps it from that; what could not be found out is said in the text.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            await get_json("/key")
    except AuthError:
        return False, "openrouter.ai refused this key. Paste it whole, or choose another way."
    except (ModelError, TimeoutError) as error:
        return True, f"The key could not be checked now: {str(error) or 'no answer.'}"
    return True, "The key is accepted."


class _FirstStart:
    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ
        self._file = Folders.of(environ).config_file
        self._out = Output(sys.stdout, lambda: None)

    def run(self) -> bool:
        try:
            while True:
                self._menu()
                answer = self._read("1, 2, 3, or q to leave: ").strip().lower()
                if answer in ("q", "quit", "exit"):
                    return False
                way = {"1": self._paste, "2": self._server, "3": self._demo}.get(answer)
                if way is None:
                    self._say("! 1, 2, 3 or q")
                elif way():
                    return True
        except (EOFError, KeyboardInterrupt):
            self._say("")
            return False

    def _menu(self) -> None:
        from hypercode.llm.local import find_servers

        self._servers = [server for server in find_servers(self._config.local_ports) if server.models]
        found = ", ".join(f"{s.name} ({len(s.models)} model{'s' * (len(s.models) > 1)})" for s in self._servers)
        made = f" (made at {_KEYS_PAGE})" if self._openrouter else ""
        self._say(
            f"hypercode needs a model to talk to, and there is no key for {self._host} yet.",
            "",
            f"  1  paste a key for {self._host}{made}",
            f"  2  a server on this machine: {found or 'none found; start one, and look again'}",
            f"  3  the tiny demo model: shows how hypercode works, answers poorly{self._missing()}",
            "",
        )

    @property
    def _openrouter(self) -> bool:
        return is_openrouter(self._config.base_url)

    @property
    def _host(self) -> str:
        return clean(host_of(self._config.base_url), "filename")

    def _missing(self) -> str:
        from hypercode.llm.local_engine import demo_weights, engine_folder

        return "" if demo_weights() is not None and engine_folder() is not None else " (not installed)"

    # -- the three ways ----------------------------------------------------------

    def _paste(self) -> bool:
        try:
            key = key_in(getpass.getpass(f"the key for {self._host} (not shown): "))
        except (EOFError, KeyboardInterrupt):
            self._say("", "")
            return False
        if key is None:
            self._say("! That is no key: a key is one word of at least 8 characters.", "")
            return False
        if self._openrouter:
            self._say("checking …")
            good, said = asyncio.run(self._check(key))
            self._say(f"{'' if good else '! '}{clean(said)}")
            if not good:
                self._say("")
                return False
        self._keep(key)
        return True

    async def _check(self, key: str) -> tuple[bool, str]:
        from hypercode.llm.client import Client
        from hypercode.llm.settings import ModelSettings

        client = Client(ModelSettings(base_url=self._config.base_url, api_key=key))
        try:
            return await check_key(client.get_json)
        finally:
            await client.aclose()

    def _keep(self, key: str) -> None:
        """In the file where its server is the file's, else for this session alone."""
        config = self._config
        owned = config.sources["base_url"] in ("default", str(self._file))
        config.api_key = key
        config.sources["file base_url"] = config.base_url
        config.sources["api_key"] = str(self._file) if owned else "this session"
        if not owned:
            self._say(
                f"Used for this session; the address comes from {config.sources['base_url']}, not from your file."
            )
            return
        try:
            keep_key(self._file, key)
        except ConfigError as error:
            self._say(f"! {clean(str(error), 'filename')}", "It is used for this session.")
            return
        self._say(f"Kept in {clean(str(self._file), 'filename')}, readable for you alone.")

    def _server(self) -> bool:
        if not self._servers:
            ports = ", ".join(map(str, self._config.local_ports))
            self._say(f"Looked on the ports {ports} again:", "")
            return False
        self._config.local = True
        self._say("The next time: hypercode --local, or local = true in the configuration.")
        return True

    def _demo(self) -> bool:
        from hypercode.local_model import connect

        ports, self._config.local, self._config.local_ports = self._config.local_ports, True, []
        try:
            connect(self._config, self._environ)
        except ConfigError as error:
            self._config.local, self._config.local_ports = False, ports
            _, _, how = str(error).partition("\n")
            self._say("! The demo model is not installed.", *clean(how or str(error)).split("\n"), "")
            return False
        return True

    # -- the terminal ------------------------------------------------------------

    def _say(self, *lines: str) -> None:
        self._out.write("".join(f"{laid_out(sys.stdout, line)}\n" for line in lines))

    def _read(self, prompt: str) -> str:
        self._out.write(prompt)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line
