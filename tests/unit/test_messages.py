"""The history checker and the wire form of a reply."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypercode.messages import (
    EARLIER,
    Reply,
    ToolCall,
    attached,
    check,
    cut_by,
    cut_note,
    data_of,
    is_cut,
    is_report,
    own,
    parse_arguments,
    parted,
    put_back,
    ran,
    system,
    text_of,
    tool_result,
    unanswered,
    user,
    well_formed,
    words_of,
)

CASES = json.loads((Path(__file__).parents[1] / "cases/security/history-repair.json").read_text())["cases"]


LENGTH = (
    *(
        "length",
        "max_tokens",
        "max_output_tokens",
        "max_completion_tokens",
        "max-new-tokens",
        "finish_reason_max_tokens",
    ),
    *(
        "model_length",
        "context_length",
        "context_length_exceeded",
        "token_limit_reached",
        "model_context_window_exceeded",
    ),
)
FILTER = (
    *("content_filter", "content_filtered", "sensitive", "safety", "image_safety", "recitation", "prohibited_content"),
    *("blocklist", "spii", "refusal", "guardrail_intervened"),
)


@pytest.mark.parametrize("reason", [*LENGTH, *FILTER])
def test_a_cut_answer_is_known_in_any_case(reason):
    for written in (reason, reason.upper(), reason.title()):
        assert (is_cut(written), Reply(finish_reason=written).cut) == (True, True)
        assert cut_by(written) == ("the provider's content filter" if reason in FILTER else "its length limit")


@pytest.mark.parametrize(
    "reason", [None, "", "stop", "STOP", "tool_calls", "end_turn", "eos", "stop_sequence", "eos_token", "tokens"]
)
def test_a_whole_answer_is_not_cut(reason):
    assert (is_cut(reason), cut_by(reason), Reply(finish_reason=reason).cut) == (False, "", False)


def skeleton(messages):
    words = []
    for m in messages:
        role, content = m["role"], m.get("content")
        if role == "system":
            words.append("s")
        elif role == "user":
            words.append(content)
        elif role == "assistant":
            ids = ",".join(c["id"] for c in m.get("tool_calls", []))
            words.append(f"a:{ids}" if ids else content)
        else:
            words.append(f"t{'!' if 'interrupted' in content else ''}:{m['tool_call_id']}")
    return " ".join(words)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_history_repair_cases(case):
    before = copy.deepcopy(case["messages"])
    got, repairs = check(case["messages"])
    assert skeleton(got) == case["expect"]
    assert case["messages"] == before, "the input is not touched"
    assert check(got) == (got, []), "a second run changes nothing"
    assert bool(repairs) == (got != before)


def test_healthy_history_keeps_its_objects():
    healthy = CASES[-1]["messages"]
    got, repairs = check(healthy)
    assert repairs == []
    assert all(a is b for a, b in zip(got, healthy, strict=True))


def call(cid, arguments="{}"):
    return {"id": cid, "type": "function", "function": {"name": "read", "arguments": arguments}}


def test_equal_ids_in_one_message_are_told_apart_with_their_results():
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c1"), call("")]},
        tool_result("c1", "first"),
        tool_result("c1", "second"),
        tool_result("", "third"),
    ]
    got, repairs = check(messages)
    assert [c["id"] for c in got[0]["tool_calls"]] == ["c1", "c1_1", "call_2"]
    assert [(m["tool_call_id"], m["content"]) for m in got[1:]] == [
        ("c1", "first"),
        ("c1_1", "second"),
        ("call_2", "third"),
    ]
    assert repairs
    assert check(got) == (got, [])


IDS = st.sampled_from(["a", "b", "c", ""])
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=3)),
        st.builds(tool_result, IDS, st.text(max_size=3)),
        st.builds(
            lambda text, calls: {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})},
            st.sampled_from([None, "", "x"]),
            st.lists(st.builds(call, IDS, st.sampled_from(["{}", "", '{"a": 1}', '{"a": ', "[1]"])), max_size=3),
        ),
    ),
    max_size=9,
)


def assert_valid(messages):
    """An independent reading of what providers demand."""
    waiting = []
    for m in messages:
        if m["role"] == "tool":
            assert waiting, "a result with no call before it"
            assert m["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting, "a call without a result"
        if m["role"] == "assistant":
            calls = m.get("tool_calls", [])
            assert calls or m["content"], "an empty assistant message"
            ids = [c["id"] for c in calls]
            assert len(set(ids)) == len(ids)
            assert all(ids)
            for c in calls:
                assert isinstance(json.loads(c["function"]["arguments"] or "{}"), dict)
            waiting = ids
    assert not waiting


@given(MESSAGES)
def test_any_history_becomes_valid_and_stays_so(messages):
    before = copy.deepcopy(messages)
    got, _ = check(messages)
    assert messages == before
    assert_valid(got)
    assert check(got) == (got, [])
    assert [m for m in got if m["role"] == "user"] == [m for m in before if m["role"] == "user"]


def test_reply_of_a_complete_turn_keeps_a_malformed_call_with_empty_arguments():
    reply = Reply(text_parts=["Look", "ing."], extra={"reasoning_details": [{"type": "x"}]})
    reply.calls = [
        ToolCall("c1", "read", '{"path": "a"}', {"path": "a"}, extra={"extra_content": 1}),
        ToolCall("c2", "read", "{'path'", None),
    ]
    assert reply.message(complete=True) == {
        "role": "assistant",
        "content": "Looking.",
        "reasoning_details": [{"type": "x"}],
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": '{"path": "a"}'},
                "extra_content": 1,
            },
            {"id": "c2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
        ],
    }
    broken_off = reply.message(complete=False)
    assert broken_off is not None
    assert [c["id"] for c in broken_off["tool_calls"]] == ["c1"]


def test_an_empty_reply_is_no_message():
    assert Reply(reasoning_parts=["hm"]).message(complete=True) is None
    assert Reply(calls=[ToolCall("c", "read", "{", None)]).message(complete=False) is None


def test_unanswered_looks_at_the_last_assistant_message_only():
    messages = [
        system("s"),
        {"role": "assistant", "content": None, "tool_calls": [call("old")]},
        {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b"), call("c")]},
        tool_result("b", "x"),
    ]
    assert unanswered(messages) == ["a", "c"]
    assert unanswered([user("hi")]) == []


def test_arguments_parse_to_an_object_or_not_at_all():
    assert parse_arguments("") == {}
    assert parse_arguments(' {"a": 1} ') == {"a": 1}
    assert parse_arguments("[1]") is None
    assert parse_arguments('{"a"') is None
    assert parse_arguments("[" * 100_000) is None


def test_surrogates_are_joined_or_replaced():
    assert well_formed("\ud83d\ude00") == "😀"
    assert well_formed("a\ud83db") == "a\ufffdb"
    assert well_formed("é中") == "é中"
    assert user("\udfff")["content"] == "\ufffd"


def test_text_of_reads_parts():
    assert text_of({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}) == "ab"
    assert text_of({"content": None}) == ""


MARK = attached([("a", "b")]).partition("\na:")[0].strip("\n")
OURS = [MARK, ran("ls", "x"), put_back("Taken back", ["a"]), cut_note("cut"), f"{EARLIER} was left out]"]
PIECES = st.lists(st.sampled_from([*OURS, MARK[:-1], "\n", "\n\n", " ", "a.md:\n", "words"]), max_size=6).map("".join)


@given(PIECES | st.text(max_size=30), st.sampled_from(["", cut_note("cut")]), st.sampled_from(["", *OURS, "x\ny"]))
def test_no_words_of_a_person_are_taken_for_what_hypercode_puts_there(text, note, data):
    more = attached([("f", data)]) if data else ""
    message = user(note + own(text) + more)
    assert parted(text_of(message)) == (note, well_formed(text), f"f:\n{data}" if data else "")
    assert note or not is_report(message)
    assert note or not text_of(message).startswith(EARLIER)
    if not note:
        assert (words_of(message), data_of(message)) == (well_formed(text), f"f:\n{data}" if data else "")


def test_most_words_go_as_they_are():
    for text in ("", "hello", "\n\nhello\n", "[Attached] a", " [x]\n", "look @a.py"):
        assert own(text) == text


def test_what_is_a_persons_own_and_what_is_data():
    told = user(ran("cat a", "I allow it\nall"))
    assert (words_of(told), data_of(told)) == ("I ran this command myself:\n$ cat a", "I allow it\nall")
    back = user(put_back("Taken back", ["I allow it"]))
    assert (words_of(back), data_of(back)) == ("", "")
    assert data_of(tool_result("c", "out")) == "out"
    assert data_of({"role": "assistant", "content": "no"}) == ""
    assert data_of({"role": "user", "content": [{"type": "text", "text": f"x\n\n{MARK}\ny"}]}) == ""
