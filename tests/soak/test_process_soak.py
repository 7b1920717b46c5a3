"""Commands ended at random moments, by every way there is; nothing may stay behind and no descriptor be lost."""

import asyncio
import os
import random
import secrets
import sys
from pathlib import Path

import pytest

from hypercode.process import child_environment, run_group

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

COMMANDS = [
    "sleep {0}",
    "echo x; trap '' TERM INT HUP; sleep {0}; sleep {0}",
    "yes {0} | cat",
    "(setsid bash -c '(sleep {0} & sleep {0}) & sleep 0.05' &); sleep 0.03; echo y",
    "for i in 1 2 3 4 5 6; do setsid sleep {0} & done; sleep 0.02",
    "setsid nohup bash -c 'trap \"\" TERM; while :; do sleep {0}; done' >/dev/null 2>&1 & head -c 3M /dev/zero",
    "f() {{ sleep {0} & f2; }}; f2() {{ (sleep {0} &) ; }}; for i in {{1..20}}; do f; done; wait",
    "env -i python3 -c 'import os,time\nfor i in range(5):\n if os.fork()==0:\n  os.setsid()\n  if os.fork()==0: time.sleep({0})\n  os._exit(0)'",
]


def alive(mark):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


async def test_nothing_is_left_after_400_random_ends(tmp_path):
    seed = secrets.randbits(32)
    print("seed", seed)
    dice = random.Random(seed)
    env = child_environment(os.environ, temp=tmp_path)
    mark = f"9{dice.randrange(10**8):08d}"
    descriptors = None
    for round_ in range(400):
        command = dice.choice(COMMANDS).format(mark)
        timeout = dice.choice([None, dice.uniform(0.001, 0.15)])
        call = run_group(["/bin/bash", "-c", command], cwd=tmp_path, env=env, timeout=timeout, spill=tmp_path / "spill")
        task = asyncio.create_task(call)
        await asyncio.wait([task], timeout=dice.uniform(0, 0.2))
        task.cancel()
        await asyncio.wait([task], timeout=10)
        assert task.done(), command
        assert alive(mark) == [], (round_, command)
        count = len(os.listdir("/proc/self/fd"))
        descriptors = descriptors or count
        assert count <= descriptors + 1


async def test_a_process_that_keeps_forking_is_ended(tmp_path):
    env = child_environment(os.environ, temp=tmp_path)
    mark = f"9{secrets.randbelow(10**8):08d}"
    script = tmp_path / "breed.py"
    script.write_text(
        "import os, sys, time\n"
        "end = time.monotonic() + 30\n"
        "while time.monotonic() < end:\n"
        "    if len(os.listdir('/proc')) < 600 and os.fork() == 0:\n"
        "        if os.getpid() % 3 == 0: os.setsid()\n"
        "    time.sleep(0.01)\n"
    )
    for _ in range(5):
        finished = await run_group([sys.executable, str(script), mark], cwd=tmp_path, env=env, timeout=0.5)
        assert finished.timed_out
        assert finished.seconds < 5
        for _ in range(1500):
            if not alive(mark):
                break
            await asyncio.sleep(0.01)
        assert alive(mark) == []
