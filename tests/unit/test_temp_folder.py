"""Temporary folders of sessions: private, gone with the session, and with the next one where it was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypercode.safety.private_file import private_folder
from hypercode.safety.temp_folder import TempFolder, sweep


def left(parent):
    return sorted(p.name for p in parent.iterdir())


def test_a_folder_is_private_whatever_the_umask_and_gone_with_its_session(tmp_path):
    old = os.umask(0)
    try:
        temp = TempFolder(tmp_path / "cache/temp/s1")
        temp.claim()
        temp.claim()
    finally:
        os.umask(old)
    folders = [tmp_path / "cache", tmp_path / "cache/temp", temp.path]
    assert [p.stat().st_mode & 0o777 for p in folders] == [0o700] * 3
    assert (tmp_path / "cache/temp/s1.lock").stat().st_mode & 0o777 == 0o600
    (temp.path / "deep").mkdir()
    (temp.path / "deep/file").touch()
    temp.close()
    assert left(tmp_path / "cache/temp") == []


def test_a_killed_session_s_folder_goes_with_the_next_and_a_living_one_s_stays(tmp_path):
    parent = tmp_path / "temp"
    root = str(Path(__file__).parents[2])
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom hypercode.safety.temp_folder import TempFolder\n"
        "t = TempFolder(Path(sys.argv[1])); t.claim(); (t.path / 'x').touch(); os.kill(os.getpid(), 9)"
    )
    env = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", script, str(parent / "killed")], env=env, check=False)
    living, mine = TempFolder(parent / "living"), TempFolder(parent / "mine")
    living.claim()
    mine.claim()
    assert left(parent) == ["killed", "killed.lock", "living", "living.lock", "mine", "mine.lock"]
    mine.close()
    assert left(parent) == ["living", "living.lock"]
    living.close()


def test_what_is_not_ours_or_not_old_stays(tmp_path, monkeypatch):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").touch()
    parent = tmp_path / "temp"
    (parent / "old").mkdir(parents=True)
    (parent / "new").mkdir()
    (parent / "file").touch()
    (parent / "link").symlink_to(tmp_path / "outside")
    (parent / "old/link").symlink_to(tmp_path / "outside")
    aged = time.time() - 90_000
    os.utime(parent / "old", (aged, aged))
    assert sweep(parent) == [parent / "old"]
    assert left(parent) == ["file", "link", "new"]
    assert (tmp_path / "outside/file").exists()
    os.utime(parent / "new", (aged, aged))
    monkeypatch.setattr(os, "geteuid", lambda: 61237)
    assert sweep(parent) == []


def test_no_more_than_some_at_a_time(tmp_path):
    for number in range(60):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}.lock").touch()
    assert (len(sweep(tmp_path)), len(sweep(tmp_path)), left(tmp_path)) == (50, 10, [])
    assert sweep(tmp_path / "nothing") == []


def test_a_private_folder_takes_the_rights_of_others_away(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir(mode=0o755)
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "link", follow=False)
    private_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file")
