"""What a journal writes, in which order and form, and what it says when it cannot."""

import asyncio
import errno
import json
import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypercode.errors import ConfigError
from hypercode.memory.history import load
from hypercode.memory.journal import PARTIAL_SECONDS, Journal, open_session
from hypercode.memory.records import encode, scan
from hypercode.messages import tool_result, user
from hypercode.safety.redact import Redactor

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"


def call(call_id, name="bash", arguments='{"command":"ls"}'):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text=None, *calls):
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


@pytest.fixture
def failures():
    return []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "sessions" / "0123" / "20250101-000000-abcdef.jsonl"


@pytest.fixture
def journal(path, failures):
    journal = Journal(path, redactor=Redactor([KEY]), on_failure=failures.append)
    yield journal
    journal.close()


def again(path, failures, fresh="fresh"):
    return open_session(path, redactor=Redactor([KEY]), on_failure=failures.append, fresh=fresh)


def lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def plain(record):
    return {k: v for k, v in record.items() if k not in ("time", "sum")}


def test_a_session_is_written_and_read(journal, path):
    journal.append("session", cwd="/w", model="m", version="1")
    journal.append("user", message=user("é中😀"))
    journal.append("assistant", message=assistant(None, call("c1")), finish_reason="tool_calls")
    journal.append("intent", call_id="c1", name="bash", arguments={"command": "ls"})
    journal.append("result", message=tool_result("c1", "a\nb"), seconds=0.5, is_error=False, kind=None)
    journal.append("turn_end", turn=1, outcome="complete", usage={"prompt_tokens": 3}, cost=0.25)
    journal.append("model", model="n")
    assert journal.append("user", message=user("more"))
    assert journal.seq == 8
    assert [plain(r) for r in lines(path)] == [
        {"type": "session", "seq": 1, "cwd": "/w", "model": "m", "version": "1"},
        {"type": "user", "seq": 2, "message": user("é中😀")},
        {"type": "assistant", "seq": 3, "message": assistant(None, call("c1")), "finish_reason": "tool_calls"},
        {"type": "intent", "seq": 4, "call_id": "c1", "name": "bash", "arguments": {"command": "ls"}},
        {"type": "result", "seq": 5, "message": tool_result("c1", "a\nb"), "seconds": 0.5, "is_error": False, "kind": None},
        {
            "type": "turn_end", "seq": 6, "turn": 1, "outcome": "complete", "usage": {"prompt_tokens": 3}, "cost": 0.25,
            "so_far": {"turns": 1, "cost": 0.25, "model": "m"},
        },
        {"type": "model", "seq": 7, "model": "n"},
        {"type": "user", "seq": 8, "message": user("more")},
    ]  # fmt: skip
    loaded = load(path)
    assert loaded.messages == [
        user("é中😀"), assistant(None, call("c1")), tool_result("c1", "a\nb"), user("more")
    ]  # fmt: skip
    assert (loaded.cwd, loaded.model, loaded.turns, loaded.cost, loaded.seq) == ("/w", "n", 1, 0.25, 8)
    assert (loaded.notices, loaded.in_flight, loaded.partial) == ([], [], "")
    assert loaded.starts == [(2, 0), (8, 3)]
    assert "é中😀".encode() in path.read_bytes()


def test_a_second_opening_goes_on(journal, path, failures):
    journal.append("user", message=user("one"))
    journal.append("turn_end", turn=1, outcome="complete", usage=None, cost=0.5)
    journal.close()
    before = path.read_bytes()
    opened = again(path, failures)
    assert opened.notices == ()
    assert opened.journal.append("turn_end", turn=2, outcome="complete", usage=None, cost=None)
    opened.journal.close()
    assert path.read_bytes().startswith(before)
    assert [plain(r) for r in lines(path)[2:]] == [
        {"type": "turn_end", "seq": 3, "turn": 2, "outcome": "complete", "usage": None, "cost": None,
         "so_far": {"turns": 2, "cost": 0.5, "model": None}},
    ]  # fmt: skip
    assert failures == []


@pytest.mark.parametrize(
    "text",
    ["\ud83d alone", "\ud83d\ude00 halves", "nul \0 in it", "sep \u2028 \x85 \r", "\x1b[31mred", "x" * 3_000_000],
)
def test_every_text_is_a_valid_line(journal, path, text):
    assert journal.append("result", message={"role": "tool", "tool_call_id": "c", "content": text})
    data = path.read_bytes()
    assert data.count(b"\n") == 1
    content = json.loads(data.decode())["message"]["content"]
    assert content == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert len(scan(data).records) == 1


def test_values_that_json_cannot_hold(journal, path):
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert journal.append("x", nan=float("nan"), path=Path("/a"), deep=deep, keys={(1, 2): 3}, fine=1)
    (record,) = scan(path.read_bytes()).records
    assert plain(record) == {
        "type": "x", "seq": 1, "nan": None, "path": "/a", "deep": "[not kept: it is nested too deeply]", "keys": {}, "fine": 1
    }  # fmt: skip


def test_names_of_its_own_are_refused(journal, path):
    with pytest.raises(ValueError, match="seq"):
        journal.append("x", seq=1)
    assert not path.exists()


def test_secrets_are_taken_out_and_signatures_kept(journal, path):
    message = {"role": "assistant", "content": KEY, "reasoning_details": [{"text": KEY, "signature": "s"}]}
    journal.append("assistant", message=message, finish_reason="stop")
    journal.append("intent", call_id="c", name="bash", arguments={"command": f"curl -H 'x: {KEY}'"})
    one, two = lines(path)
    assert one["message"] == message | {"content": "[redacted: key]"}
    assert two["arguments"] == {"command": "curl -H 'x: [redacted: key]'"}
    assert message["content"] == KEY


@pytest.mark.parametrize("split", range(len(KEY) + 1))
def test_a_secret_split_over_increments(tmp_path, split, failures):
    path = tmp_path / "s.jsonl"
    journal = Journal(path, redactor=Redactor([KEY]), on_failure=failures.append)
    text = f"your key is {KEY}, keep it"
    for piece in (text[: 12 + split], text[12 + split :]):
        journal.append("partial", sync=False, text=piece)
    assert load(path).partial.endswith("[redacted: key], keep it")
    assert KEY[9:] not in path.read_text()
    assert KEY not in "".join(r["text"] for r in lines(path))
    journal.close()


def test_increments_make_the_whole_text_and_the_reply_replaces_them(journal, path):
    journal.append("user", message=user("go"))
    pieces = ["Half ", "a sentence, ", "then ", "`code` wor"]
    for number, piece in enumerate(pieces):
        journal.append("partial", sync=False, text=piece, reasoning="hm")
        assert load(path).partial == "".join(pieces[: number + 1])
    loaded = load(path)
    assert loaded.messages == [user("go"), assistant("Half a sentence, then `code` wor")]
    assert loaded.notices == ["The last answer was cut off; what had arrived of it is kept."]
    journal.append("assistant", message=assistant("Whole."), finish_reason="stop")
    assert load(path).messages == [user("go"), assistant("Whole.")]
    assert load(path).partial == ""


def test_a_cut_reply_stays_when_the_session_goes_on(journal, path):
    journal.append("user", message=user("go"))
    journal.append("partial", sync=False, text="cut")
    journal.append("session", cwd="/", model="m", version="2")
    journal.append("user", message=user("on"))
    loaded = load(path)
    assert loaded.messages == [user("go"), assistant("cut"), user("on")]
    assert loaded.partial == ""


async def test_pieces_are_gathered_but_not_for_long(journal, path):
    journal.partial("one ")
    assert [r["text"] for r in lines(path)] == ["one "]
    for word in ("two ", "three ", "four"):
        journal.partial(word)
    journal.partial(reasoning="why")
    assert len(lines(path)) == 1
    async with asyncio.timeout(20):
        while len(lines(path)) < 2:
            await asyncio.sleep(PARTIAL_SECONDS / 5)
    assert plain(lines(path)[1]) == {"type": "partial", "seq": 2, "text": "two three four", "reasoning": "why"}
    journal.partial(" five")
    journal.append("turn_end", turn=1, outcome="aborted", usage=None, cost=None)
    assert [r["type"] for r in lines(path)] == ["partial", "partial", "partial", "turn_end"]
    assert load(path).messages == [assistant("one two three four five")]


async def test_pieces_are_forgotten_when_the_whole_has_come(journal, path):
    journal.partial("one ")
    journal.partial("two")
    journal.append("assistant", message=assistant("one two"), finish_reason="stop")
    await asyncio.sleep(PARTIAL_SECONDS * 2)
    assert [r["type"] for r in lines(path)] == ["partial", "assistant"]


def test_intents_without_a_result_are_unknown(journal, path):
    journal.append("user", message=user("go"))
    journal.append("assistant", message=assistant("x", call("c1"), call("c2")), finish_reason="tool_calls")
    for call_id in ("c1", "c2"):
        journal.append("intent", call_id=call_id, name="bash", arguments={"command": call_id})
    journal.append("result", message=tool_result("c2", "done"), seconds=1, is_error=False, kind=None)
    loaded = load(path)
    assert [r["call_id"] for r in loaded.in_flight] == ["c1"]
    assert loaded.notices == ["hypercode ended while this was going on: bash. What it did is not known."]
    made_up = "[interrupted: what this call did is not known]"
    whole = [user("go"), assistant("x", call("c1"), call("c2")), tool_result("c1", made_up), tool_result("c2", "done")]
    assert loaded.messages == whole
    journal.append("user", message=user("what happened?"))
    loaded = load(path)
    assert loaded.messages == [*whole, user("what happened?")]
    assert loaded.in_flight == []


def test_a_rewind_takes_back_what_came_since(journal, path):
    journal.append("user", message=user("one"))
    journal.append("assistant", message=assistant("1"), finish_reason="stop")
    journal.append("user", message=user("two"))
    to = journal.seq
    journal.append("assistant", message=assistant(None, call("c1")), finish_reason="stop")
    journal.append("intent", call_id="c1", name="bash", arguments={})
    journal.append("rewind", to=to)
    assert load(path).messages == [user("one"), assistant("1")]
    assert load(path).in_flight == []
    journal.append("user", message=user("three"))
    assert load(path).messages == [user("one"), assistant("1"), user("three")]
    assert load(path).starts == [(1, 0), (journal.seq, 2)]
    assert len(load(path).records) == 7


def test_messages_that_cannot_be_sent_are_left_out(path, failures):
    path.parent.mkdir(parents=True)
    bad = [
        {"role": "user", "content": 5}, "text", {"role": "assistant", "content": "x", "tool_calls": [{"id": 1}]},
        {"role": "rolf", "content": ""}, {"role": "assistant", "content": "x", "tool_calls": {}}, None,
    ]  # fmt: skip
    kinds = ["user", "user", "assistant", "user", "assistant", "result"]
    records = [{"type": k, "seq": n, "message": m} for n, (k, m) in enumerate(zip(kinds, bad, strict=True), 1)]
    path.write_bytes(b"".join(map(encode, [*records, {"type": "user", "seq": 7, "message": user("fine")}])))
    loaded = load(path)
    assert loaded.messages == [user("fine")]
    assert loaded.notices == [f"6 messages of {path.stem} could not be understood: left out."]


# -- files ---------------------------------------------------------------------------


def test_private_under_any_umask(path, failures):
    for mask in (0, 0o022, 0o777):
        old = os.umask(mask)
        try:
            here = path.with_name(f"u{mask}") / "s.jsonl"
            journal = Journal(here, redactor=Redactor(), on_failure=failures.append)
            assert journal.append("session", cwd="/", model="m", version="1")
            journal.close()
        finally:
            os.umask(old)
        assert stat.S_IMODE(here.stat().st_mode) == 0o600
        assert {stat.S_IMODE(p.stat().st_mode) for p in list(here.parents)[:4]} == {0o700}
    assert failures == []


def test_lax_modes_are_tightened(journal, path, failures):
    journal.append("user", message=user("x"))
    journal.close()
    path.chmod(0o644)
    path.parent.chmod(0o755)
    opened = again(path, failures)
    assert opened.journal.append("user", message=user("y"))
    opened.journal.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_links_and_other_things_are_not_followed(path, tmp_path, failures):
    path.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_bytes(b"keep")
    path.symlink_to(target)
    fifo = path.with_name("fifo.jsonl")
    os.mkfifo(fifo)
    for wrong, what in ((path, "link"), (fifo, "regular"), (path.with_name("absent.jsonl"), "no such")):
        with pytest.raises(ConfigError, match=what):
            load(wrong)
        with pytest.raises(ConfigError, match=what):
            again(wrong, failures)
    for wrong in (path, fifo):
        journal = Journal(wrong, redactor=Redactor(), on_failure=failures.append)
        assert not journal.append("user", message=user("x"))
        journal.close()
    assert target.read_bytes() == b"keep"
    assert len(failures) == 2


def test_a_second_writer_gets_a_copy(journal, path, failures):
    journal.append("user", message=user("one"))
    journal.append("vision", shape="unknown to us")
    opened = again(path, failures, fresh="20250102-000000-fedcba")
    assert opened.copy_of == path.stem
    assert opened.notices == (
        f"The session {path.stem} is open in another hypercode; this is a copy of it, 20250102-000000-fedcba.",
    )
    assert opened.loaded.messages == [user("one")]
    assert opened.journal.path == path.with_name("20250102-000000-fedcba.jsonl")
    assert opened.journal.append("user", message=user("two"))
    assert journal.append("user", message=user("first goes on"))
    opened.journal.close()
    assert load(opened.journal.path).messages == [user("one"), user("two")]
    assert [(r["type"], r["seq"]) for r in load(opened.journal.path).records] == [
        ("user", 1), ("vision", 2), ("copy", 3), ("user", 4)
    ]  # fmt: skip
    assert load(path).messages == [user("one"), user("first goes on")]
    assert failures == []


def test_the_lock_holds_between_processes(journal, path):
    journal.append("user", message=user("one"))
    code = (
        "import sys; from pathlib import Path; from hypercode.memory.journal import open_session; from hypercode.memory.session_file import is_open\n"
        "from hypercode.safety.redact import Redactor\n"
        "p = Path(sys.argv[1]); o = open_session(p, redactor=Redactor(), on_failure=print, fresh='c')\n"
        "print(is_open(p), o.copy_of, o.journal.append('user', message={'role': 'user', 'content': 'x'}))"
    )
    run = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == f"True {path.stem} True\n"
    path.with_name("c.jsonl").unlink()
    journal.close()
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "True None True\n"


def broken_write(monkeypatch, code, after=0):
    """`os.write` that writes `after` bytes more and then fails, until the returned switch is set."""
    write, left, mended = os.write, [after], []

    def failing(fd, data):
        if mended:
            return write(fd, data)
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        count = write(fd, data[: left[0]])
        left[0] -= count
        return count

    monkeypatch.setattr(os, "write", failing)
    return mended


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("after", [0, 1, 20])
def test_a_full_disk_is_told_once_and_nothing_is_lost(journal, path, failures, monkeypatch, code, after):
    assert journal.append("user", message=user("one"))
    good = path.read_bytes()
    mended = broken_write(monkeypatch, code, after)
    assert not journal.append("assistant", message=assistant("two"), finish_reason="stop")
    assert not journal.append("user", message=user("three"))
    assert not journal.saved
    assert path.read_bytes() == good
    assert len(failures) == 1
    assert os.strerror(code) in failures[0]
    assert str(path) in failures[0]
    mended.append(True)
    assert journal.append("user", message=user("four"))
    assert journal.saved
    assert load(path).messages == [user("one"), assistant("two"), user("three"), user("four")]
    assert load(path).notices == []
    assert len(failures) == 1


def test_bytes_that_cannot_be_taken_back_are_sealed(journal, path, failures, monkeypatch):
    assert journal.append("user", message=user("one"))
    mended = broken_write(monkeypatch, errno.ENOSPC, 20)

    def refuse(fd, length):
        raise OSError(errno.EPERM, "append only")

    monkeypatch.setattr(os, "ftruncate", refuse)
    assert not journal.append("user", message=user("two"))
    mended.append(True)
    assert journal.append("user", message=user("three"))
    loaded = load(path)
    assert loaded.messages == [user("one"), user("two"), user("three")]
    assert loaded.notices == [
        f"The session {path.stem} was damaged: 1 line, 20 bytes, could not be read and are left out."
    ]


def test_a_failed_sync_is_written_again_and_read_once(journal, path, failures, monkeypatch):
    sync = os.fsync
    journal.append("user", message=user("one"))

    def refuse(fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refuse)
    assert not journal.append("user", message=user("two"))
    assert not journal.saved
    monkeypatch.setattr(os, "fsync", sync)
    assert journal.append("user", message=user("three"))
    assert load(path).messages == [user("one"), user("two"), user("three")]
    assert len(failures) == 1


def test_a_real_limit_on_the_file(path):
    """A file size limit cuts a write in the middle, as a full disk does."""
    code = f"""
import resource, sys; from pathlib import Path
from hypercode.memory.journal import Journal; from hypercode.safety.redact import Redactor
from hypercode.messages import user
journal = Journal(Path(sys.argv[1]), redactor=Redactor(), on_failure=print)
assert journal.append("user", message=user("one"))
resource.setrlimit(resource.RLIMIT_FSIZE, (400, {resource.RLIM_INFINITY}))
assert not journal.append("user", message=user("x" * 1000))
assert not journal.append("user", message=user("two"))
resource.setrlimit(resource.RLIMIT_FSIZE, ({resource.RLIM_INFINITY}, {resource.RLIM_INFINITY}))
assert journal.append("user", message=user("three")) and journal.saved
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("not being saved") == 1
    assert load(path).messages == [user("one"), user("x" * 1000), user("two"), user("three")]
    assert load(path).notices == []


def test_a_folder_that_cannot_be(tmp_path, failures):
    (tmp_path / "sessions").write_text("a file where a folder should be")
    journal = Journal(tmp_path / "sessions" / "h" / "s.jsonl", redactor=Redactor(), on_failure=failures.append)
    assert not journal.append("user", message=user("one"))
    journal.partial("piece")
    journal.append("assistant", message=assistant("whole"), finish_reason="stop")
    assert len(failures) == 1
    (tmp_path / "sessions").unlink()
    assert journal.append("user", message=user("two"))
    assert [r["type"] for r in lines(journal.path)] == ["user", "assistant", "user"]
    journal.close()
    assert [(r["seq"], r.get("instead_of")) for r in lines(journal.path)] == [(1, None), (3, [2]), (4, None)]
    assert load(journal.path).notices == []  # the piece is no loss


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_session_can_be_read(journal, path, failures):
    journal.append("user", message=user("one"))
    journal.close()
    path.chmod(0o400)
    opened = again(path, failures)
    assert opened.loaded.messages == [user("one")]
    assert not opened.journal.append("user", message=user("two"))
    assert len(failures) == 1


def test_a_session_that_can_only_be_read_goes_on_in_memory(journal, path, failures, monkeypatch):
    journal.append("user", message=user("one"))
    journal.close()
    real = os.open

    def read_only(name, flags, *args, **kwargs):
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(name))
        return real(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", read_only)
    opened = again(path, failures)
    assert opened.loaded.messages == [user("one")]
    assert not opened.journal.append("user", message=user("two"))
    assert len(failures) == 1
    monkeypatch.undo()
    assert opened.journal.append("user", message=user("three"))
    assert load(path).messages == [user("one"), user("two"), user("three")]
    opened.journal.close()


def test_a_deleted_file_is_noticed(journal, path, failures):
    journal.append("user", message=user("one"))
    path.unlink()
    assert journal.append("user", message=user("two"))
    assert load(path).messages == [user("two")]
    assert len(failures) == 1
    assert "deleted" in failures[0]


def test_ten_thousand_records_are_read_quickly(path):
    path.parent.mkdir(parents=True)
    records = []
    for n in range(0, 10_000, 4):
        records += [
            {"type": "user", "seq": n + 1, "message": user(f"question {n} " * 20)},
            {
                "type": "assistant",
                "seq": n + 2,
                "message": assistant("x", call(f"c{n}")),
                "finish_reason": "tool_calls",
            },
            {"type": "intent", "seq": n + 3, "call_id": f"c{n}", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "result", "seq": n + 4, "message": tool_result(f"c{n}", "output\n" * 200)},
        ]
    path.write_bytes(b"".join(map(encode, records)))
    times = []
    for _ in range(3):
        started = time.perf_counter()
        loaded = load(path)
        times.append(time.perf_counter() - started)
    assert (len(loaded.records), len(loaded.messages), loaded.notices) == (10_000, 7_500, [])
    assert min(times) < 5  # a second on an idle machine


def test_the_limit_of_the_process_is_as_it_was():
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
