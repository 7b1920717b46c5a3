"""Killed in the middle of an undo: every file is the old or the new one, and undo goes on from there.  A small dose."""

from undo_kills import kill_once, prepare


def test_a_killed_undo_leaves_old_or_new(tmp_path):
    prepare(tmp_path)
    for number in range(4):
        kill_once(tmp_path, 0.2 + 0.013 * number)
    assert list(tmp_path.rglob("aside-*")) == []
