"""Every kind of damage: what can still be read is read, the rest is kept and named, and the session goes on."""

import json
import os
import random
import stat
from pathlib import Path

import pytest

from hypercode.errors import ConfigError
from hypercode.memory.history import load
from hypercode.memory.journal import Journal, open_session
from hypercode.memory.records import encode, scan
from hypercode.messages import check, tool_result, user
from hypercode.safety.redact import Redactor

CASES = {
    c["id"]: c
    for c in json.loads((Path(__file__).parents[1] / "cases/security/journal-damage.json").read_text())["cases"]
}
LIVE = {"kill9_during_append", "enospc_during_append", "two_writers", "mode", "link"}
ON_BYTES = [c for c in CASES.values() if c["damage"] not in LIVE]
TEXTS = ["one", "two", "é中😀 three", "four", "five", 'six {"type":"user"}', "seven", "eight", "nine 😀"]


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "sessions" / "whole.jsonl"
    journal = Journal(path, redactor=Redactor(), on_failure=pytest.fail)
    for text in TEXTS:
        assert journal.append("user", message=user(text))
    journal.close()
    return path.read_bytes()


def go_on(path):
    opened = open_session(path, redactor=Redactor(), on_failure=pytest.fail, fresh="fresh")
    assert opened.copy_of is None
    assert opened.journal.append("user", message=user("appended"))
    opened.journal.close()
    return opened


def damaged(data, case):
    """The bytes after the damage, and the damaged bytes that must be kept."""
    rows = data.split(b"\n")[:-1]
    match case["damage"]:
        case "none":
            return data, b""
        case "cut_last_bytes" if case["n"] == 1:
            return data[:-2], rows[-1][:-1]
        case "cut_last_bytes":
            return data[: -len(rows[-1]) + 2], rows[-1][:3]
        case "cut_final_newline":
            return data[:-1], b""
        case "cut_inside_utf8":
            end = data.rindex("😀".encode()) + 2
            return data[:end], data[data.rindex(b"\n", 0, end) + 1 : end]
        case "append_nuls":
            return data + b"\0" * case["n"], b""
        case "nul_line_in_middle":
            return b"\n".join([*rows[:4], b"\0" * 512, *rows[4:], b""]), b""
        case "garbage_line_in_middle":
            return b"\n".join(
                [*rows[: case["line"] - 1], b"\xff\xfe garbage {", *rows[case["line"] :], b""]
            ), b"\xff\xfe garbage {"
        case "fuse_two_records":
            return b"\n".join([*rows[:3], rows[3] + rows[4], *rows[5:], b""]), b""
        case "append_blank_lines":
            return data + b"\n" * case["n"], b""
        case "truncate_to_zero":
            return b"", b""
        case "unknown_record_type":
            return changed(rows, 4, type="hologram"), b""
        case "unknown_field":
            return changed(rows, 4, colour="blue"), b""
        case "duplicate_last_record":
            return data + rows[-1] + b"\n", b""


def changed(rows, number, **fields):
    record = {k: v for k, v in json.loads(rows[number]).items() if k != "sum"} | fields
    return b"\n".join([*rows[:number], encode(record)[:-1], *rows[number + 1 :], b""])


def expected(word, count):
    return {"all": count, "all-1": count - 1, "all-2": count - 2, "all+1": count + 1, "0": 0, "1": 1}[word]


@pytest.mark.parametrize("case", ON_BYTES, ids=[c["id"] for c in ON_BYTES])
def test_case(case, whole, tmp_path):
    data, lost = damaged(whole, case)
    path = tmp_path / "sessions" / "damaged.jsonl"
    path.write_bytes(data)
    count, better = len(TEXTS), 2 if case["damage"] == "fuse_two_records" else 0
    opened = go_on(path)
    assert len(opened.loaded.records) == expected(case["records_read"], count) + better
    loaded = load(path)
    assert len(loaded.records) == expected(case["append_then_read"], count) + better
    assert loaded.messages[-1] == user("appended")
    assert path.read_bytes().startswith(data)
    side = path.with_suffix(".damaged")
    if lost:
        assert side.read_bytes() == lost + b"\n"
        assert stat.S_IMODE(side.stat().st_mode) == 0o600
        assert len(opened.notices) == 1
        assert str(side) in opened.notices[0]
        assert "\n" not in opened.notices[0]
        go_on(path)
        assert side.read_bytes() == lost + b"\n"
    else:
        assert not side.exists()
    if case["damage"] == "truncate_to_zero":
        assert opened.notices == ("The session damaged is empty: nothing of its conversation is left.",)


def test_a_newline_alone_is_no_loss(whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole[:-1])
    assert go_on(path).notices == ()
    assert [m["content"] for m in load(path).messages] == [*TEXTS, "appended"]


def test_a_link_is_refused(whole, tmp_path):
    (tmp_path / "real.jsonl").write_bytes(whole)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    with pytest.raises(ConfigError, match="link"):
        go_on(tmp_path / "link.jsonl")
    assert (tmp_path / "real.jsonl").read_bytes() == whole


def test_a_torn_record_fused_with_the_next(whole, tmp_path):
    rows = whole.split(b"\n")[:-1]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([*rows[:3], rows[3][:30] + rows[4], *rows[5:], b""]))
    loaded = load(path)
    assert [m["content"] for m in loaded.messages] == [t for n, t in enumerate(TEXTS) if n != 3]
    assert loaded.notices == ["The session s was damaged: 1 line, 30 bytes, could not be read and are left out."]


def test_a_record_by_an_unknown_hand(whole, tmp_path):
    """Fields added, spaces added, no checksum, a wrong one: it is read, and a wrong sum is named."""
    rows = whole.split(b"\n")[:-1]
    path = tmp_path / "s.jsonl"
    edited = json.dumps(json.loads(rows[1]) | {"colour": "blue"}).encode()
    foreign = b'{"type": "hologram", "x": 1}'
    path.write_bytes(b"\n".join([rows[0], edited, foreign, *rows[2:], b""]))
    loaded = load(path)
    assert len(loaded.records) == len(TEXTS) + 1
    assert [m["content"] for m in loaded.messages] == TEXTS
    assert loaded.notices == [
        "The session s was damaged: 1 record did not match the checksum and were taken as they are."
    ]


def test_windows_line_ends_do_no_harm(whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert [m["content"] for m in load(path).messages] == TEXTS
    assert load(path).notices == []


@pytest.mark.parametrize("junk", [b"[" * 200_000, b'{"type":' * 20_000, b'{"type":5}', b"null", b'"x"', b"\xff" * 1000])
def test_junk_is_only_junk(junk, whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole + junk + b"\n" + whole)
    opened = go_on(path)
    assert len(opened.loaded.records) == len(TEXTS)
    assert path.with_suffix(".damaged").read_bytes() == junk + b"\n"


def test_random_damage(whole, tmp_path):
    """Whatever happens to the bytes, records that were not touched are read, and the session goes on."""
    rng = random.Random(7)
    path = tmp_path / "s.jsonl"
    side = path.with_suffix(".damaged")
    rows = whole.split(b"\n")[:-1]
    for _ in range(300):
        data = bytearray(whole)
        touched = set()
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            length = rng.randint(1, 40)
            data[at : at + length] = rng.choice([rng.randbytes(length), b"\0" * length, b"\n" * length])
            begin = 0
            for n, row in enumerate(rows):
                if begin <= at + length and at <= begin + len(row):
                    touched.add(n)
                begin += len(row) + 1
        side.unlink(missing_ok=True)
        path.write_bytes(data)
        go_on(path)
        loaded = load(path)
        contents = [m["content"] for m in loaded.messages]
        assert [t for n, t in enumerate(TEXTS) if n not in touched and t not in contents] == []
        assert contents[-1] == "appended"
        assert path.read_bytes().startswith(bytes(data))


def test_every_place_to_cut(whole, tmp_path):
    path = tmp_path / "s.jsonl"
    ends = [i + 1 for i, b in enumerate(whole) if b == 10]
    for cut in range(len(whole) - 400, len(whole) + 1):
        path.write_bytes(whole[:cut])
        count = sum(end - 1 <= cut for end in ends)
        opened = go_on(path)
        assert len(opened.loaded.records) == count
        assert len(load(path).records) == count + 1


def test_the_side_file_is_not_written_through_a_link(whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole + b"garbage\n")
    target = tmp_path / "target"
    target.write_bytes(b"keep")
    path.with_suffix(".damaged").symlink_to(target)
    opened = go_on(path)
    assert opened.notices == ("The session s was damaged: 1 line, 7 bytes, could not be read and are left out.",)
    assert target.read_bytes() == b"keep"
    assert os.path.islink(path.with_suffix(".damaged"))


def test_nothing_is_repeated(whole):
    found = scan(whole + whole)
    assert (len(found.records), found.repeated) == (len(TEXTS), len(TEXTS))


GAPS = [
    ((1,), "1 record (number 1 of 9) is missing"),
    ((4,), "1 record (number 4 of 9) is missing"),
    ((1, 2, 5, 8), "4 records (numbers 1-2, 5, 8 of 9) are missing"),
    ((2, 3, 4, 5, 6, 7, 8), "7 records (numbers 2-8 of 9) are missing"),
]


@pytest.mark.parametrize(("gone", "said"), GAPS)
def test_records_that_were_taken_out_are_named(gone, said, whole, tmp_path):
    rows = whole.split(b"\n")[:-1]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(row + b"\n" for number, row in enumerate(rows, 1) if number not in gone))
    opened = go_on(path)
    assert opened.notices == (f"The session s was damaged: {said}.",)
    assert [m["content"] for m in opened.loaded.messages] == [t for n, t in enumerate(TEXTS, 1) if n not in gone]
    again = load(path)
    assert again.notices == [f"The session s was damaged: {said.replace('of 9', 'of 10')}."]
    assert (again.messages[-1], again.seq) == (user("appended"), 10)
    assert not path.with_suffix(".damaged").exists()


def test_a_line_that_cannot_be_read_is_no_second_loss(whole, tmp_path):
    """But a record that is gone from another place is one."""
    rows = whole.split(b"\n")[:-1]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([rows[0], b"garbage", *rows[2:6], *rows[7:], b""]))
    assert load(path).notices == [
        "The session s was damaged: 1 line, 7 bytes, could not be read and are left out; 1 record (number 7 of 9) is missing."
    ]


def test_a_copy_and_a_torn_end_that_was_sealed_have_no_gap(whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole[:-20])
    first = open_session(path, redactor=Redactor(), on_failure=pytest.fail, fresh="fresh")
    assert first.journal.append("user", message=user("on"))
    copy = open_session(path, redactor=Redactor(), on_failure=pytest.fail, fresh="fresh")
    assert copy.copy_of == "s"
    assert copy.journal.append("user", message=user("of the copy"))
    assert first.journal.append("user", message=user("of the first"))
    for opened in (first, copy):
        opened.journal.close()
        assert "missing" not in " ".join(load(opened.journal.path).notices)


def test_a_call_whose_records_were_taken_out_may_have_run(tmp_path):
    """Without the record of its beginning it is not said that it was not run; the conversation can be sent."""
    path = tmp_path / "sessions" / "s.jsonl"
    journal = Journal(path, redactor=Redactor(), on_failure=pytest.fail)
    ask = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    journal.append("user", message=user("go"))
    journal.append("assistant", message={"role": "assistant", "content": None, "tool_calls": [ask]})
    journal.append("intent", call_id="c1", name="bash", arguments={}, begun=True)
    journal.append("result", message=tool_result("c1", "done"), seconds=0.1, is_error=False, kind=None)
    journal.append("user", message=user("and?"))
    journal.close()
    rows = path.read_bytes().split(b"\n")[:-1]
    for gone, roles in (((2, 3), ["user", "assistant", "tool", "user"]), ((1,), ["user", "user"]), ((0,), None)):
        path.write_bytes(b"".join(row + b"\n" for number, row in enumerate(rows) if number not in gone))
        loaded = load(path)
        assert loaded.notices[0].startswith("The session s was damaged: ")
        assert check(loaded.messages)[1] == []
        assert roles in (None, [m["role"] for m in loaded.messages])
        assert not [m for m in loaded.messages if str(m["content"]).startswith("[not run")]


@pytest.mark.parametrize("seq", [10**18, -5, True, "7", None, 2.5])
def test_numbers_that_no_journal_writes(seq, whole, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole + encode({"type": "user", "time": 1, "seq": seq, "message": user("odd")}))
    loaded = load(path)
    assert [m["content"] for m in loaded.messages] == [*TEXTS, "odd"]
    assert any("missing" in notice for notice in loaded.notices) is (seq == 10**18)
