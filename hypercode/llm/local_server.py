"""The embedded model server: a script, `python -I local_server.py`, that runs llama.cpp's own HTTP server (PyPI `xllamacpp`).

The first line on standard input is a JSON object: `engine` (the folder xllamacpp is in), `weights`, `alias`, `template` (null:
the file's own), `context`, `threads`, `key` and `repeat_penalty` (1.0: none).  Once the server listens, `{"url": …}` is a line on standard output; what the
engine itself prints goes to standard error.  The end of standard input ends the process: whoever started it is gone then.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

__all__ = ["main", "parameters"]

_PING_SECONDS = 5
_PENALTY_TOKENS = 64


def main() -> None:
    """Serve until the parent is gone or SIGTERM comes."""
    _die_with_parent()
    told = sys.stdin.buffer.readline()
    if not told:
        return
    wanted = json.loads(told)
    threading.Thread(target=_watch, daemon=True).start()
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.append(wanted["engine"])
    os.environ["OMP_WAIT_POLICY"] = "passive"  # spinning threads would take the cores from everyone else
    xllamacpp = importlib.import_module("xllamacpp")
    server = xllamacpp.Server(parameters(xllamacpp.CommonParams(), wanted))
    report.write(json.dumps({"url": server.listening_address}) + "\n")
    report.close()
    threading.Event().wait()


def parameters(params: Any, wanted: Mapping[str, Any]) -> Any:
    """The engine's parameters: one conversation at a time, on loopback, for whoever has the key."""
    params.model.path = wanted["weights"]
    params.model_alias = {wanted["alias"]}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [wanted["key"]]
    params.cors_origins = "http://127.0.0.1"
    params.ui = params.endpoint_slots = False
    params.offline = True
    params.n_ctx, params.n_parallel, params.n_batch = wanted["context"], 1, 128
    params.cache_ram_mib = 0  # a second conversation's cache, by default up to 8 GiB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted["threads"]
    params.sse_ping_interval = _PING_SECONDS
    params.use_jinja = True
    if wanted["template"] is not None:
        params.chat_template = wanted["template"]
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = wanted["repeat_penalty"], _PENALTY_TOKENS
    return params


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _die_with_parent() -> None:
    """On Linux the kernel sees to it as well: the engine keeps Python's lock while it loads, so nothing watches then."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG, prctl(2)


if __name__ == "__main__":
    main()
