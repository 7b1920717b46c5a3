"""Chunks → reply: the kinds that the recorded streams show, and their neighbours."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hypercode.errors import ModelError, ModelUnavailable
from hypercode.events import ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from hypercode.llm.assemble import Assembler
from hypercode.llm.calls import repair_arguments
from hypercode.llm.sse import DAMAGED, DONE, GARBLED, SSEReader
from hypercode.messages import Reply

CAPTURES = Path(__file__).parents[1] / "cases" / "captures"


def delta(fields: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}], **more}


def fragment(
    arguments: object = "", name: str | None = None, ident: str | None = None, index: object = 0
) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name is not None else {})
    return delta({"tool_calls": [{"index": index, "id": ident, "function": function}]})


def assemble(items: Iterable[Any], known: Iterable[str] = (), complete: bool = True) -> tuple[Reply, list[Any]]:
    reply, events = Reply(), []
    assembler = Assembler(reply, events.append, frozenset(known))
    for item in items:
        if item is DAMAGED:
            assembler.mark_damaged()
        elif item is GARBLED:
            assembler.mark_garbled()
        elif item is DONE:
            assembler.mark_done()
        else:
            assembler.apply(item)
    assembler.close(complete=complete)
    return reply, events


def calls(*items: Any, known: Iterable[str] = ()) -> list[tuple[str, str, Any]]:
    reply, _ = assemble(items, known)
    assert all(c.id for c in reply.calls)
    assert len({c.id for c in reply.calls}) == len(reply.calls)
    return [(c.name, c.arguments, c.damaged) for c in reply.calls]


def test_announcements() -> None:
    reply, events = assemble(
        [
            delta({"reasoning": "hm"}),
            delta({"role": "assistant", "content": "a"}),
            fragment("", "edit_ex", "c1"),
            fragment("", "isting"),
            fragment('{"x":'),
            fragment("1}"),
            delta({}, "tool_calls", usage={"prompt_tokens": 1, "cost": 0.5}, provider="P", model="m", id="g"),
        ]
    )
    assert events == [
        ReasoningDelta("hm"),
        TextDelta("a"),
        ToolCallStart(0, "edit_ex"),
        ToolCallStart(0, "edit_existing"),
        ToolCallDelta(0, '{"x":'),
        ToolCallDelta(0, "1}"),
    ]
    assert (reply.cost, reply.provider, reply.model, reply.generation_id, reply.shown) == (0.5, "P", "m", "g", True)


def test_arguments_before_the_name_are_announced_with_it() -> None:
    _, events = assemble([fragment('{"a"', None, "c"), fragment(":1}", "read")])
    assert events == [ToolCallStart(0, "read"), ToolCallDelta(0, '{"a"'), ToolCallDelta(0, ":1}")]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        # calls without ids on one index
        ([fragment('{"a":1}', "read"), fragment('{"b":1}', "read")], [("read", '{"a":1}', False), ("read", '{"b":1}', False)]),
        ([fragment('{"a":1}', "read"), fragment('{"b":1}', "grep")], [("read", '{"a":1}', False), ("grep", '{"b":1}', False)]),
        # the same call once more at the end
        ([fragment('{"a":1}', "read", "c"), fragment('{"a":1}', "read", "c")], [("read", '{"a": 1}', False)]),
        ([fragment('{"a":1}', "read"), fragment('{"a":1}', "read")], [("read", '{"a": 1}', False)]),
        # an index of its own for each fragment
        ([fragment('{"a"', "read", "c", 0), fragment(":1", None, None, 1), fragment("}", None, None, 2)], [("read", '{"a":1}', False)]),
        # an index that is text; ids that are numbers
        ([fragment('{"a"', "read", "c", "0"), fragment(":1}", None, None, "0")], [("read", '{"a":1}', False)]),
        # the id announces the second call, the name follows
        (
            [fragment("{}", "read", "c1", None), delta({"tool_calls": [{"id": "c2"}]}), fragment("", "grep", None, None), fragment("{}", None, None, None)],
            [("read", "{}", False), ("grep", "{}", False)],
        ),
        # name in a prefix, name with a namespace in pieces
        ([fragment("{}", "functions.read", "c")], [("read", "{}", False)]),
        ([fragment("", "functions.", "c"), fragment("{}", "read", None)], [("read", "{}", False)]),
        # the name so far, again and again
        ([fragment("", "ed", "c"), fragment("", "edit", "c"), fragment("{}", "edit", "c")], [("edit", "{}", False)]),
        # the fields of the function at the top of the fragment
        ([delta({"tool_calls": [{"id": "c", "name": "read", "arguments": {"a": 1}}]})], [("read", '{"a": 1}', False)]),
        ([delta({"tool_calls": {"index": 0, "id": "c", "function": {"name": "read", "arguments": "{}"}}})], [("read", "{}", False)]),
        ([delta({"function_call": {"name": "read"}}), delta({"function_call": {"arguments": "{}"}})], [("read", "{}", False)]),
        # a blank at the end: with the name again, at a new index, with an id that is known or new
        ([fragment('{"a"', "read", "c"), fragment(":1}", "read"), fragment("\n", "read")], [("read", '{"a":1}\n', False)]),
        ([fragment('{"a":1}', "read", "c"), fragment("\n", None, None, 1)], [("read", '{"a":1}\n', False)]),
        ([fragment('{"a":1}', "read", "c"), fragment("", None, None, 1)], [("read", '{"a":1}', False)]),
        ([fragment('{"a":1}', "read", "c"), fragment(" ", None, "d", 1)], [("read", '{"a":1}', False)]),
        # a known id at a new index, with the rest or with all; what follows there belongs to it too
        ([fragment('{"a"', "read", "c"), fragment(":", None, "c", 5), fragment("1}", None, None, 5)], [("read", '{"a":1}', False)]),
        ([fragment("", "read", "c"), fragment('{"a":1}', None, "c", 1)], [("read", '{"a":1}', False)]),
        # two calls by turns on one index, told apart by their ids
        (
            [fragment("", "read", "c"), fragment("", "grep", "d"), fragment('{"a":1}', None, "c"), fragment('{"b":1}', None, "d")],
            [("read", '{"a":1}', False), ("grep", '{"b":1}', False)],
        ),
        # an index written as 1.0
        (
            [fragment("", "read", "c", 0.0), fragment("", "grep", "d", 1.0), fragment('{"a":1}', None, None, 0.0), fragment('{"b":1}', None, None, 1.0)],
            [("read", '{"a":1}', False), ("grep", '{"b":1}', False)],
        ),
        # one id for two calls: arguments that contradict each other are two; those that grow are one
        ([fragment('{"a":1}', "read", "c"), fragment('{"a":2}', "read", "c")], [("read", '{"a":1}', False), ("read", '{"a":2}', False)]),
        ([fragment('{"a":1}', "read", "c", None), fragment('{"b":2}', "read", "c", None)], [("read", '{"a":1}', False), ("read", '{"b":2}', False)]),
        ([fragment('{"a":1}', "read", "c"), fragment('{"a":1,"b":2}', "read", "c")], [("read", '{"a": 1, "b": 2}', False)]),
        # the old field beside the new one, with the same in it
        (
            [delta({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read", "arguments": p}}], "function_call": {"name": "read", "arguments": p}}) for p in ('{"a":', "1}")],
            [("read", '{"a":1}', False)],
        ),
        # a name that never comes is never run; an announcement of nothing is nothing
        ([fragment("{}", None, "c")], [("unnamed", "{}", True)]),
        ([delta({"tool_calls": [{"index": 0, "id": "c"}]})], []),
        # junk
        ([delta({"tool_calls": [None, 3, "x", []]}), delta({"tool_calls": "x"})], []),
    ],
)  # fmt: skip
def test_calls(items: list[Any], expected: list[Any]) -> None:
    assert calls(*items, delta({}, "tool_calls")) == expected


@pytest.mark.parametrize("ident", ["c", None])
def test_many_fragments_with_the_name_in_each_cost_no_more_than_their_number(ident: str | None) -> None:
    count = 20_000
    pieces = ['{"a":"', *["x"] * count, '"}']
    start = time.process_time()
    found = calls(*(fragment(piece, "read", ident) for piece in pieces), delta({}, "stop"))
    assert found == [("read", "".join(pieces), False)]
    assert time.process_time() - start < 3


def test_known_names_tell_two_calls_without_arguments_from_a_name_in_pieces() -> None:
    pair = [fragment("", "ls"), fragment("", "status")]
    assert [c[0] for c in calls(*pair, known=["ls", "status"])] == ["ls", "status"]
    assert [c[0] for c in calls(*pair, known=["lsstatus"])] == ["lsstatus"]


@pytest.mark.parametrize(
    ("items", "damaged"),
    [
        ([fragment('{"a":"x', "write", "c"), DAMAGED, fragment('y"}')], [True]),  # parses, and a piece is missing
        ([fragment("", "write", "c"), DAMAGED, fragment("{}")], [True]),
        ([fragment('{"a":1}', "write", "c"), DAMAGED], [False]),
        ([fragment('{"a":1}', "write", "c"), DAMAGED, fragment(" ")], [True]),
        ([fragment('{"a":1}', "write", "c"), DAMAGED, fragment("{}", "read", "d", 1)], [False, False]),
        # an empty object may be the forerunner of what was lost, as long as no other call has begun
        ([fragment("{}", "read", "c"), DAMAGED], [True]),
        ([fragment("{}", "read", "c"), GARBLED, delta({"lost": "\ufffd"}), DAMAGED], [True]),
        ([fragment("{}", "read", "c"), fragment('{"a":1}', "write", "d", 1), DAMAGED], [False, False]),
        ([DAMAGED, fragment("{}", "read", "c")], [False]),
        ([DAMAGED, fragment("", "read", "c")], [True]),  # the name was there again
        ([DAMAGED, fragment('{"a":1}'), fragment("", "read", "c")], [True]),
        ([DAMAGED, fragment('{"', "read", "d", 1), fragment("{}", index=0), fragment('a":1}', index=1)], [False, True]),
        ([DAMAGED, fragment("{}")], [True]),
        ([fragment("{}", "read", "c"), delta({}, "stop"), DAMAGED], [False]),
        # what is garbled damages the call it belongs to, even a whole one and with the finish reason; no other whole one
        ([GARBLED, fragment('{"a":"\ufffd"}', "write", "c"), DAMAGED], [True]),
        ([fragment('{"a":"', "write", "c"), GARBLED, fragment('\ufffd"}'), DAMAGED, fragment(" ")], [True]),
        ([fragment("{}", "read", "c"), GARBLED, fragment('{"a":"\ufffd"}', "write", "d", 1), DAMAGED], [False, True]),
        (
            [
                GARBLED,
                delta(
                    {"tool_calls": [{"id": "c", "function": {"name": "write", "arguments": '{"a":"\ufffd"}'}}]}, "stop"
                ),
                DAMAGED,
            ],
            [True],
        ),
        ([GARBLED, delta({"content": "\ufffd"}), DAMAGED, fragment("{}", "read", "c")], [False]),
        ([fragment("", "ls", "c"), delta({}, "stop"), GARBLED, {"usage": {"x": "\ufffd"}}, DAMAGED], [False]),
    ],
)
def test_a_lost_line_inside_a_call_damages_it(items: list[Any], damaged: list[bool]) -> None:
    assert [c[2] for c in calls(*items)] == damaged


@pytest.mark.parametrize(
    ("items", "damaged"),
    [
        # the arguments of the second call went to the first one, or to none
        ([fragment('{"a":1}', "x", "c"), fragment("", "y", "d", 1), fragment('{"b":2}', index=0)], [True, True]),
        ([fragment('{"a":1}', "x", "c"), fragment("", "x", "d", 1), fragment('{"a":1}', index=0)], [True, True]),
        ([fragment("{}", "x", "c"), fragment("", "y", "d", 1), fragment('{"b":2}', index=0)], [True, True]),
        ([fragment("", "x", "c", 9), fragment('{"a":1}', None, "e", 0)], [True, True]),
        ([fragment("{}", "x", "c"), fragment('{"b":2}', None, "d", None)], [True, True]),
        ([fragment("", "x", "c"), delta({"tool_calls": [{"index": 0, "function": '{"a":1}'}]})], [True]),
        # the same again, and an empty object before it, are ways to send the arguments of one call
        ([fragment("{}", "x", "c"), fragment('{"a":1}', "y", "d", 1), fragment('{"a":1}', index=1)], [False, False]),
        ([fragment("{}", "x", "c"), fragment('{"a":1}'), fragment("{}", "x", "d", 1)], [False, False]),
        ([fragment("", "x", "c"), fragment('{"a":{"b":{}}}', "y", "d", 1)], [False, False]),
    ],
)
def test_arguments_that_went_astray(items: list[Any], damaged: list[bool]) -> None:
    assert [c[2] for c in calls(*items)] == damaged


def test_arguments_of_an_answer_that_broke_off_are_not_taken_as_none() -> None:
    items = [fragment("", "x", "c"), fragment("{}", "y", "d", 1), fragment('{"a":1}', "z", "e", 2)]
    parsed = [[call.parsed for call in assemble(items, complete=whole)[0].calls] for whole in (True, False)]
    assert parsed == [[{}, {}, {"a": 1}], [None, None, {"a": 1}]]


def test_arguments_that_are_nested_too_deep_are_none() -> None:
    reply, _ = assemble([fragment('{"a":' * 101 + "1" + "}" * 101, "x", "c")])
    assert [call.parsed for call in reply.calls] == [None]
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    reply, _ = assemble([delta({"extra_content": deep, "tool_calls": [{"extra_content": deep, "name": "x"}]})])
    assert (reply.extra, [call.extra for call in reply.calls]) == ({}, [{}])


@pytest.mark.parametrize(
    ("fragments", "parsed"),
    [
        ([], {}),
        ([" "], {}),
        (['{"a": 1}'], {"a": 1}),
        (["{}", '{"a":', "1}"], {"a": 1}),
        (['{"a":1}', "{}"], {"a": 1}),
        (['{"a":', "1}", '{"a":1}'], {"a": 1}),
        (['{"a"', '{"a":1', '{"a":1}'], {"a": 1}),
        (['{"a":1}', '{"a":1,"b":2}'], {"a": 1, "b": 2}),
        (['"{\\"a\\": 1}"'], {"a": 1}),
        (["null"], {}),
        (['```json\n{"a":1}\n```'], {"a": 1}),
        (['{"a":"x\ty"}'], {"a": "x\ty"}),
        (['{"a":1}{"a":2}'], None),
        (["{'a': 1}"], None),
        (['{"a":1,}'], None),
        (['{"a":'], None),
        (["[1]"], None),
        (["1"], None),
        (['""'], None),
        (["{" * 50_000], None),
    ],
)
def test_repairs(fragments: list[str], parsed: Any) -> None:
    text, value = repair_arguments(fragments)
    assert value == parsed
    assert text == "".join(fragments) if value is None else json.loads(text) == value


def test_what_parses_is_left_alone() -> None:
    assert repair_arguments(['{"a":  1}', " "]) == ('{"a":  1} ', {"a": 1})


def test_pairs_of_surrogates() -> None:
    reply, events = assemble(
        [delta({"content": "a\ud83d"}), delta({"content": "\ude80"}), delta({"content": "b\ud83d"})]
    )
    assert events == [TextDelta("a"), TextDelta("🚀"), TextDelta("b"), TextDelta("\ufffd")]
    assert reply.text == "a🚀b\ufffd"
    assert calls(fragment('{"a":"\ud83d', "w", "c"), fragment('\ude80"}')) == [("w", '{"a":"🚀"}', False)]


@pytest.mark.parametrize(
    ("pieces", "reasoning", "text"),
    [
        (["<think>a</think>\n\nb"], "a", "b"),
        (["\n<th", "ink>a</", "thi", "nk>", "\n", "b"], "a", "b"),
        (["<think>a < b</think>b"], "a < b", "b"),
        (["<thin", "g>"], "", "<thing>"),
        (["<th"], "", "<th"),
        (["x <think>a</think>"], "", "x <think>a</think>"),
        (["<think>", "all of it"], "all of it", "all of it"),
        (["<think></think>", "b"], "", "b"),
        ([" ", "b"], "", " b"),
    ],
)
def test_think_tags(pieces: list[str], reasoning: str, text: str) -> None:
    reply, _ = assemble([delta({"content": p}) for p in pieces] + [delta({}, "stop")])
    assert (reply.reasoning, reply.text) == (reasoning, text)


@pytest.mark.parametrize(("reason", "complete"), [(None, False), ("stop", False), ("length", True)])
@pytest.mark.parametrize("rest", ["", "</thi"])
def test_thinking_that_was_cut_is_no_answer(reason: str | None, complete: bool, rest: str) -> None:
    reply, _ = assemble([delta({"content": "<think>hm"}), delta({"content": rest}, reason)], complete=complete)
    assert (reply.reasoning, reply.text) == ("hm" + rest, "")


def test_reasoning_goes_back() -> None:
    block = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    reply, events = assemble(
        [
            delta({"reasoning_details": [{**block, "text": "a"}]}),
            delta(
                {
                    "reasoning_details": [
                        {**block, "text": "b"},
                        {"type": "reasoning.encrypted", "index": 0, "data": "x"},
                    ]
                }
            ),
            delta({"reasoning_details": [{**block, "signature": "s", "text": None}]}),
            delta({"reasoning_content": "rc", "extra_content": {"g": {"s": 1}}}),
            delta(
                {
                    "tool_calls": [
                        {"index": 0, "id": "c", "function": {"name": "r"}, "extra_content": {"google": {"s": "t"}}}
                    ]
                }
            ),
        ]
    )
    assert reply.extra == {
        "reasoning_details": [
            {**block, "text": "ab", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 0, "data": "x"},
        ],
        "reasoning_content": "rc",
        "extra_content": {"g": {"s": 1}},
    }
    assert reply.calls[0].extra == {"extra_content": {"google": {"s": "t"}}}
    assert events[:3] == [ReasoningDelta("a"), ReasoningDelta("b"), ReasoningDelta("rc")]


def test_encrypted_blocks_of_different_calls_are_not_merged() -> None:
    blocks = [{"type": "reasoning.encrypted", "index": 0, "id": i, "data": i} for i in ("t1", "t2")]
    reply, _ = assemble([delta({"reasoning_details": [b]}) for b in blocks])
    assert reply.extra["reasoning_details"] == blocks


def test_an_unsigned_block_of_a_cut_answer_stays_here() -> None:
    block = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": "a"}
    assert assemble([delta({"reasoning_details": [block]})], complete=False)[0].extra == {}


def test_usage() -> None:
    one, two = {"prompt_tokens": 3, "completion_tokens": 1}, {"prompt_tokens": 3, "completion_tokens": 2, "cost": None}
    zeros = {"prompt_tokens": 0, "completion_tokens": 0}
    assert assemble([delta({}, usage=one), delta({}, usage=two), delta({}, usage=zeros)])[0].usage == {
        **one,
        "completion_tokens": 2,
    }
    assert assemble([delta({}, usage=zeros)])[0].usage == zeros
    assert assemble([{"choices": [{"usage": one}]}])[0].usage == one
    assert assemble([delta({}, usage={"cost": float("nan")})])[0].usage == {"cost": None}
    assert assemble([delta({}, usage="many")])[0].usage is None


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"message": "boom"}},
        {"error": "boom"},
        {"error": ["boom"]},
        {"error": True},
        {"error": {"error": {"message": "boom"}}},
        {"object": "error", "message": "boom"},
        {"type": "error", "error": {"message": "boom"}},
        {"message": "boom", "code": 500},
        {"detail": "boom"},
        {"choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "ERROR"}]},
        {"choices": [{"delta": {"error": {"message": "boom", "code": 502}}}]},
        {"choices": [{"index": 0, "delta": {"content": "b", "error": "boom"}}]},
        {"choices": [{"index": 0, "message": {"content": "", "error": {"message": "boom"}}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "network_error"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "INSUFFICIENT_SYSTEM_RESOURCE"}]},
        {"choices": [], "error": {"code": "x"}},
        {"error": 500},
        {"error": {"code": 0, "message": "boom"}},
        {"code": 200, "success": False, "message": "boom"},
        {"code": "InvalidParameter", "message": "boom"},
        {"status": "error", "message": "boom"},
        {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "boom"}},
        {"error_code": 336003, "error_msg": "boom"},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "cancelled"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "MALFORMED_FUNCTION_CALL"}]},
    ],
)
def test_errors_wherever_they_hide(chunk: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        assemble([delta({"content": "a"}), chunk])


@pytest.mark.parametrize(
    "reason",
    ["error", "network_error", "Insufficient_System_Resource", "cancelled", "abort", "MALFORMED_FUNCTION_CALL"],
)
def test_a_failure_as_finish_reason_may_pass(reason: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        assemble([fragment('{"a":1}', "read", "c"), delta({}, reason)])
    assert caught.value.retryable
    assert (reason in str(caught.value), "ended the answer with an error" in str(caught.value)) == (True, True)


def test_an_error_in_the_delta_says_what_it_is() -> None:
    chunk = {"choices": [{"delta": {"error": {"message": "boom", "code": 502}}}]}
    with pytest.raises(ModelUnavailable, match="boom") as caught:
        assemble([chunk, DONE])
    assert (caught.value.status, caught.value.retryable) == (502, True)


@pytest.mark.parametrize(
    ("fields", "reasoning", "text"),
    [
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "", "I cannot."),
        ({"content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]}, "", "ab"),
        ({"thinking": "hm"}, "hm", ""),
        ({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a"}]}, "hm", "a"),
        ({"reasoning_text": "hm"}, "hm", ""),
        ({"thinking": "hm", "content": "a"}, "hm", "a"),
        ({"thinking": "hm", "reasoning_text": "hm", "reasoning": "hm", "reasoning_content": "hm"}, "hm", ""),
        ({"thinking": {"type": "enabled"}, "reasoning_text": 3, "content": "a"}, "", "a"),
    ],
)
def test_text_and_reasoning_wherever_they_stand(fields: dict[str, Any], reasoning: str, text: str) -> None:
    reply, _ = assemble([delta(fields), delta({}, "stop")])
    assert (reply.reasoning, reply.text) == (reasoning, text)


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000, "-" + "9" * 5000])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_number_of_any_length_loses_no_chunk(digits: str, quote: str) -> None:
    number = f"{quote}{digits}{quote}"
    usage = f'"usage":{{"prompt_tokens":{number},"cost":{number}}}'
    call = f'"tool_calls":[{{"index":{number},"id":"c","function":{{"name":"read","arguments":{{"n":{number}}}}}}}]'
    choice = f'"choices":[{{"index":0,"delta":{{"content":"a",{call}}}}}]'
    items = SSEReader().feed(f'data: {{"created":{number},{choice},{usage}}}\n\n'.encode())
    reply, _ = assemble([*items, delta({}, "stop")])
    assert (reply.text, [c.name for c in reply.calls]) == ("a", ["read"])
    error = SSEReader().feed(
        f'data: {{"error":{{"code":{number},"message":"boom","retry_after":{number}}}}}\n\n'.encode()
    )
    with pytest.raises(ModelError, match="boom"):
        assemble(error)


@pytest.mark.parametrize("empty", [None, {}, "", False, [], {"message": None, "code": ""}, 0])
def test_empty_errors_are_none(empty: object) -> None:
    assert assemble([delta({"content": "a"}, error=empty), {"error": empty}, delta({}, "stop")])[0].text == "a"
    assert assemble([delta({"content": "a", "error": empty}), delta({"error": empty}, "stop")])[0].text == "a"


@pytest.mark.parametrize(
    "chunk",
    [
        {"status": "queued", "message": "position 3"},
        {"code": 200, "message": "success"},
        {"code": "200", "msg": "done"},
        {"code": 0, "message": "ok"},
        {"code": "ok", "message": "queued"},
        {"code": "Success", "message": "fine"},
        {"status": 200, "message": "ok"},
        {"error_code": 0, "error_msg": "success"},
        {"base_resp": {"status_code": 0, "status_msg": "success"}},
        {"error": {"code": 0, "message": "success"}},
        {"error": {"code": 200, "message": ""}},
        delta({"content": ""}, error={"code": 0, "message": "no error"}),
    ],
)
def test_a_status_or_a_code_of_success_is_no_error(chunk: dict[str, Any]) -> None:
    assert assemble([chunk, delta({"content": "a"}, "stop")])[0].text == "a"


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"choices": None},
        {"choices": "x"},
        {"choices": [None, 1, "x"]},
        {"choices": {"index": 0, "delta": {"content": ""}}},
        delta(None),
        delta({"content": 7}),
        delta({"content": {"type": "text", "text": ""}}),
        delta({"reasoning": 3, "reasoning_details": [1, None], "refusal": {}, "extra_content": "x"}),
        {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": ""}], "usage": 3, "model": 5, "id": 7, "provider": []},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "null"}]},
    ],
)
def test_odd_shapes_are_nothing(junk: dict[str, Any]) -> None:
    reply, events = assemble([junk])
    assert (events, reply.finish_reason, reply.usage, reply.model) == ([], None, None, None)


def test_a_whole_message_counts_unless_it_was_streamed() -> None:
    message = {"choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}]}
    assert assemble([message])[0].text == "ab"
    assert assemble([delta({"content": "ab"}), message])[0].text == "ab"


def test_text_before_an_error_and_its_provider_are_kept() -> None:
    reply, events = Reply(), []
    assembler = Assembler(reply, events.append, host="gate")
    assembler.apply(delta({"content": "a"}, provider="P"))
    with pytest.raises(ModelUnavailable, match=r"^P \(through gate\) \(502\): x\.") as caught:
        assembler.apply({"error": {"code": 502, "message": "x"}})
    assert (caught.value.provider, reply.text) == ("P", "a")


WITHOUT_USAGE = ("llamacpp-text-no-usage", "llamacpp-ping-comments")
RECORDED = {
    "llamacpp-after-tool-result": ("This", "stop", [], True),
    "llamacpp-parallel-false-not-honoured": ("", "length", ["read", "grep", "grep"], True),
    "llamacpp-parallel-tool-calls-cut": ("", "length", ["read", "grep"], True),
    "llamacpp-ping-comments": ("To improve the code", "length", [], True),
    "llamacpp-prefill-forces-call": ("", "tool_calls", ["grep"], True),
    "llamacpp-required-not-honoured": ("Hello. I'm a Python", "length", [], True),
    "llamacpp-server-killed-mid-stream": ("A hash table", None, [], False),
    "llamacpp-text": ("Hello! I'm here", "stop", [], True),
    "llamacpp-text-length": ("A hash table", "length", [], True),
    "llamacpp-text-no-usage": ("Hello! I'm here", "stop", [], True),
    "llamacpp-tool-call": ("", "tool_calls", ["read"], True),
    "llamacpp-tool-call-cut-by-length": ("", "length", ["grep"], True),
    "llamacpp-tool-call-two-args": ("", "tool_calls", ["grep"], True),
    "llamacpp-tool-choice-none-markup": ("<tool_call>", "stop", [], True),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_a_real_server(name: str) -> None:
    text, finish, names, done = RECORDED[name]
    reader = SSEReader()
    items = reader.feed((CAPTURES / f"{name}.sse").read_bytes()) + reader.close()
    assert DAMAGED not in items
    assert (DONE in items) is done
    reply, events = assemble(items)
    assert reply.finish_reason == finish
    assert [c.name for c in reply.calls] == names
    assert reply.text.startswith(text)
    if finish == "tool_calls":
        assert all(c.parsed and not c.damaged for c in reply.calls)
    assert reply.text == "".join(e.text for e in events if isinstance(e, TextDelta))
    assert (reply.usage is not None) is (done and name not in WITHOUT_USAGE)


def test_the_recordings_are_all_tested() -> None:
    assert {p.stem for p in CAPTURES.glob("*.sse")} == set(RECORDED)


def test_a_delta_costs_little_more_than_its_json() -> None:
    line = json.dumps(delta({"content": "abcd"}, id="gen-1", object="chat.completion.chunk", model="demo/model-1"))
    count = 4000

    def plain() -> float:
        start = time.process_time()
        for _ in range(count):
            json.loads(line)
        return time.process_time() - start

    def whole() -> float:
        data = f"data: {line}\n\n".encode()
        reader, events = SSEReader(), []
        assembler = Assembler(Reply(), events.append)
        start = time.process_time()
        for _ in range(count):
            for item in reader.feed(data):
                assembler.apply(item)
        assert len(events) == count
        return time.process_time() - start

    assert min(whole() for _ in range(3)) < 6 * min(plain() for _ in range(3))


def test_nothing_heavy_is_imported_before_the_first_call() -> None:
    code = "import sys, hypercode.llm.client, hypercode.llm.fake; print({m.partition('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"openai", "httpx2", "httpx", "pydantic", "anyio", "rich"} & ast.literal_eval(loaded)
