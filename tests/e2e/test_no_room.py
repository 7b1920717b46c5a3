"""A disk without room: one clear line, and no talk of a fault."""

import errno
import os
import subprocess
from pathlib import Path

import pytest
from stage import HYPERCODE

from hypercode.guard import guarded

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
@pytest.mark.parametrize(
    "command", [["run", "--schema"], ["config", "show"], ["policy", "test", "--", "ls"], ["--version"], ["--help"]]
)
def test_output_that_cannot_be_written_is_said(stage, command):
    s = stage()
    with FULL.open("w") as full:
        done = subprocess.run(
            [HYPERCODE, *command],
            env=s.environment(),
            cwd=s.workspace,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "hypercode: the output could not be written: No space left on device\n",
    )


@pytest.mark.parametrize("command", [["run", "--schema"], ["--version"]])
def test_a_reader_that_is_gone_ends_quietly(stage, command):
    s = stage()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [HYPERCODE, *command], env=s.environment(), stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_file_without_room_is_named(capfd):
    def work():
        raise OSError(errno.ENOSPC, "No space left on device", "/far/away")

    assert guarded(work) == 1
    assert capfd.readouterr().err == (
        "hypercode: No space left on device (/far/away). Make room, or name another place: TMPDIR for temporary files, "
        "HYPERCODE_HOME for hypercode's own\n"
    )


def in_a_tiny_folder(tmp_path, script):
    """Runs a script where `$TMPDIR` is a disk of 128 kB of its own; skips where none can be mounted."""
    (tmp_path / "tiny").mkdir()
    mount = f"mount -t tmpfs -o size=128k none {tmp_path}/tiny || exit 99\nexport TMPDIR={tmp_path}/tiny\n"
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount + script], capture_output=True, text=True, timeout=60, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    return done


def test_a_tour_without_room_for_its_files_says_so(tmp_path):
    fill = "dd if=/dev/zero of=$TMPDIR/fill bs=1k 2>/dev/null; truncate -s -4096 $TMPDIR/fill\n"
    done = in_a_tiny_folder(tmp_path, f"{fill}{HYPERCODE} demo --instant </dev/null; code=$?; ls $TMPDIR; exit $code")
    assert (done.returncode, done.stdout) == (2, "fill\n")
    assert done.stderr == (
        f"hypercode: the tour's files cannot be written in {tmp_path}/tiny (No space left on device); "
        "TMPDIR names another place\n"
    )
