"""The fault-injecting server as a command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request

from hypercode.testing.scenarios import SCENARIOS
from hypercode.testing.server import FaultServer, main

COMMAND = [sys.executable, "-m", "hypercode.testing.server"]


def test_help_lists_every_scenario_with_what_it_does() -> None:
    text = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    listed = dict(re.findall(r"^  (\S+)  +(\S.*)$", text.partition("scenarios:")[2], re.M))
    assert set(listed) == set(SCENARIOS)
    assert len(SCENARIOS) >= 40
    assert all(line.endswith((".", "whole.", "healthy.")) for line in listed.values())


def test_it_says_where_it_listens_and_lists_its_models() -> None:
    with subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            where = json.loads(process.stdout.readline())
            with urllib.request.urlopen(f"{where['base_url']}/models") as answer:
                assert [m["id"] for m in json.load(answer)["data"]] == list(SCENARIOS)
        finally:
            process.terminate()


def test_it_needs_no_package_but_the_standard_library() -> None:
    code = "import sys, hypercode.testing.server; print(sorted({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names))"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    assert {m for m in eval(loaded) if not m.startswith("_")} <= {"hypercode"}


def test_a_taken_port_is_told(capsys: object) -> None:
    with FaultServer() as server:
        assert main(["--port", str(server.port)]) == 1
