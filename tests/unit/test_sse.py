"""Bytes → chunks."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hypercode.llm.sse import DAMAGED, DONE, GARBLED, SSEReader, parse_objects

CASES = Path(__file__).parents[1] / "cases"


def read(data: bytes, *sizes: int) -> list[Any]:
    """All items of a body that arrives in pieces of these sizes, over and over; without sizes whole."""
    reader = SSEReader()
    items: list[Any] = []
    position = number = 0
    while position < len(data):
        size = sizes[number % len(sizes)] if sizes else len(data)
        items += reader.feed(data[position : position + size])
        position += size
        number += 1
    return items + reader.close()


A, B = {"choices": [1]}, {"choices": [2]}
SPOILT = [GARBLED, {"choices": ["\ufffd"]}]


@pytest.mark.parametrize(
    ("data", "items"),
    [
        (b'data: {"choices":[1]}\n\ndata: {"choices":[2]}\n\ndata: [DONE]\n\n', [A, B, DONE]),
        (b'data:{"choices":[1]}\r\n\r\ndata:[DONE]\r\n\r\n', [A, DONE]),
        (b'data: {"choices":[1]}\r\rdata: {"choices":[2]}\r\r', [A, B]),
        (b'data: {"choices":[1]}\ndata: {"choices":[2]}\ndata: [DONE]', [A, B, DONE]),
        (b'\xef\xbb\xbfdata: {"choices":[1]}\n\n', [A]),
        (b'\xef\xbb\xbf\xef\xbb\xbfdata: {"choices":[1]}\n\n', [A]),
        (b'\xef\xbb\xbf\xef\xbb\xbfdata: {"choices":[1]}', [A]),
        (b'data: [{"error":{"message":"x"}}]\n\n', [{"error": {"message": "x"}}]),
        (b'data: [{\ndata: "error":"x"}\ndata: ]\n\ndata: {"choices":[1]}\n\n', [{"error": "x"}, A]),
        (b'data: [{"error":\n\ndata: {"choices":[1]}\n\n', [DAMAGED, A]),
        (b'data: [{"a":1},2]\n\n', [DAMAGED]),
        (b"data: [1,2]\n\ndata: []\n\n", []),
        (b'data: {"choices":\ndata: [1]\ndata: }\n\n', [A]),
        (b'data: {"choices":[1]}{"choices":[2]}\n\n', [A, B]),
        (b'data: {"choices":[1]} \n\n', [A]),
        (b': ping\n\ndata:\n\ndata: null\n\ndata: 42\n\ndata: "x"\n\nevent: ping\ndata: {"a":1}\n\n', []),
        (b"data: please wait\n\nid: 1\nretry: 3\n\nevent: ping\n\n", []),
        (b'data: {"choices":[1\n\ndata: {"choices":[2]}\n\n', [DAMAGED, B]),
        (b'data: {"choices":[1\ndata: {"choices":[2]}\ndata: [DONE]\n', [DAMAGED, B, DONE]),
        (b'data: hoices":[1]}\n\ndata: {"choices":[2]}\n\n', [DAMAGED, B]),
        (b'data: {"choices":[1]}\n\ndata: 1]}\n\n', [A, DAMAGED]),
        # the field of a chunk, or its beginning, is gone: in a stream that is damage, whatever the line looks like now
        *(
            (b'data: {"choices":[1]}\n\n' + torn + b'\n\ndata: {"choices":[2]}\n\n', [A, DAMAGED, B])
            for torn in (
                b'\xffata: {"choices":[0]}',
                b'ata: {"choices":[0]}',
                b'Data: {"choices":[0]}',
                b'dat\xff: {"choices":[0]}',
                b'"choices":[0]}',
                b"0]}",
                b': {"choices":[0]}',
                b':{"delta":"x"}]}',
                b': keep-alivedata: {"choices":[0]}',
                b'id: 7data: {"choices":[0]}',
                b'event: pingdata: {"choices":[0]}',
            )
        ),
        (b'ata: {"choices":[0]}\n\ndata: {"choices":[1]}\n\n', [DAMAGED, A]),
        (b'{"choices":[1]}\n\xff"choices":[0]}\n{"choices":[2]}\n', [A, DAMAGED, B]),
        (b'data: {"choices":[1]}\n\n: {"ping":1}\n\nx-more: y\n\nplease wait\n\nid: {}\n\n', [A]),
        (b'data: {"choices":[1]}\n\n[DONE]data: {"choices":[0]}\n\n', [A, DONE, DAMAGED]),
        (b'data: [DONE]data: {"choices":[0]}\n\n', [DONE, DAMAGED]),
        # bytes that are no UTF-8: the chunk is marked on both sides, wherever it stands
        (b'data: {"choices":["\xff"]}\n\n', [*SPOILT, DAMAGED]),
        (b'{"choices":["\xff"]}\n', [*SPOILT, DAMAGED]),
        (b'data: {"choices":\ndata: ["\xff"]}\n\n', [*SPOILT, DAMAGED]),
        (b'data: {"choices":["\xff"]}{"choices":[1]}\n\n', [*SPOILT, DAMAGED, GARBLED, A, DAMAGED]),
        (b'data: "{\\"choices\\":[\\"\xff\\"]}"\n\n', [*SPOILT, DAMAGED]),
        (b"data: \xff wait\n\n: \xff\n\n", []),
        # a field `error`, a word before the message, an error in words
        (b'error: {"code":500,"message":"x"}\n\n', [{"error": {"code": 500, "message": "x"}}]),
        (b'data: {"choices":[1]}\n\nerror: {"error":{"message":"x"}}\n\n', [A, {"error": {"message": "x"}}]),
        (b'data: error: {"message":"x"}\n\n', [{"error": {"message": "x"}}]),
        (b"Error: it broke\n\n", [{"error": "it broke"}]),
        (b"<html>\nerror: function(x)\n", []),
        (b"error:\nerror: null\nerror: {}\n\n", []),
        # wrapped twice, a mark or a blank before each field, a ping that nothing separates from the data
        (b'data: data: {"choices":[1]}\n\ndata: data: [DONE]\n\n', [A, DONE]),
        (b"data: " * 5000 + b"x\n\n", []),
        (b'data: "{\\"choices\\":[1]}"\n\n', [A]),
        (b'\xef\xbb\xbfdata: {"choices":[1]}\n\n\xef\xbb\xbfdata: {"choices":[2]}\n\n', [A, B]),
        (b' data: {"choices":[1]}\n\n\tdata: [DONE]\n\n', [A, DONE]),
        (b'event: ping\ndata: {}\ndata: {"choices":[1]}\n\n', [A]),
        (b'ping\ndata: {"choices":[1]}\n\n{"choices":[2]}\n', [A, B]),
        (b'data: {"choices":["a\tb"]}\n\n', [{"choices": ["a\tb"]}]),
        (b'event: error\ndata: {"message":"x"}\n\n', [{"error": {"message": "x"}}]),
        (b"event: error\ndata: it broke\n\n", [{"error": "it broke"}]),
        (
            b'event: error\ndata: {"error":{"message":"x"}}\n\ndata: {"choices":[1]}\n\n',
            [{"error": {"message": "x"}}, A],
        ),
        (b'event: message\nid: 7\ndata: {"choices":[1]}\n\n', [A]),
        (b'{"choices":[1]}\n{"choices":[2]}\n', [A, B]),
        (b'data: {"choices":["a\xe2\x80\xa8b\xc2\x85c"]}\n\n', [{"choices": ["a\u2028b\x85c"]}]),
        (b'data: {"choices":[NaN]} trailing\n\n', None),
        (b"data: " + b"[" * 100_000 + b"\n\n", []),
        (b'data: {"a":' + b"[" * 100_000 + b"\n\n", [DAMAGED]),
        (b'data: [{"a":' + b"[" * 101 + b"]" * 101 + b"}]\n\n", [DAMAGED]),
        (b'data: {"a":["' + b"[" * 500 + b'"]}\n\n', [{"a": ["[" * 500]}]),
        (b"", []),
    ],
)
def test_kinds(data: bytes, items: list[Any] | None) -> None:
    if items is None:
        assert read(data)[1:] == [DAMAGED]
        return
    assert read(data) == items
    for sizes in ((1,), (2, 3), (7, 1, 64)):
        if len(data) < 5000:
            assert read(data, *sizes) == items


def test_an_event_is_delivered_with_its_line_not_with_the_next_one() -> None:
    reader = SSEReader()
    assert reader.feed(b'data: {"choices":[1]}\n') == [A]
    assert reader.feed(b"\n") == []


def test_what_is_no_stream_is_kept() -> None:
    page = b"<html>\n<body>x</body>\n</html>"
    reader = SSEReader()
    assert reader.feed(page) + reader.close() == []
    assert reader.body == page
    pretty = json.dumps({"choices": [{"message": {"content": "x"}}]}, indent=1).encode()
    reader = SSEReader()
    assert reader.feed(pretty) + reader.close() == []
    assert json.loads(reader.body) == json.loads(pretty)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a":1}', [{"a": 1}]),
        ('starting\n{\n "a": 1\n}\n\0', [{"a": 1}]),
        ('[{"a":1},\n{"a":2}]', [{"a": 1}, {"a": 2}]),
        ('{"a":1}\n{"a":2}', [{"a": 1}, {"a": 2}]),
        ('{"a":', []),
        ("words {and} braces", []),
        ("[1]", []),
        ("", []),
    ],
)
def test_objects_among_lines(text: str, values: list[Any]) -> None:
    assert parse_objects(text) == values


def test_an_error_over_several_lines_is_kept_whole() -> None:
    reader = SSEReader()
    assert reader.feed(b'data: {"choices":[1]}\n\nerror: {\n  "message": "x"\n}\n') + reader.close() == [A]
    assert parse_objects(reader.body.decode()) == [{"message": "x"}]


def test_a_long_line_costs_no_more_than_its_length() -> None:
    body = b'data: {"choices":["' + b"x" * 3_000_000 + b'"]}\n\n'
    assert read(body, 1024) == [{"choices": ["x" * 3_000_000]}]


def bodies() -> list[bytes]:
    found = []
    for path in sorted((CASES / "streams").glob("*.json")):
        case = json.loads(path.read_text())
        segments = case.get("segments", [])
        data = b"".join(
            (base64.b64decode(s["b64"]) if "b64" in s else s["bytes"].encode()) * min(s.get("repeat", 1), 50)
            for s in segments
        )
        found.append(data)
    return found + [path.read_bytes()[:20_000] for path in sorted((CASES / "captures").glob("*.sse"))]


def test_pieces_make_no_difference() -> None:
    rng = random.Random(7)
    for data in bodies():
        whole = read(data)
        for _ in range(3):
            assert read(data, *(rng.randint(1, 90) for _ in range(20))) == whole


def test_any_bytes_are_survived() -> None:
    rng = random.Random(11)
    samples = [data for data in bodies() if data]
    for _ in range(400):
        data = bytearray(rng.choice(samples)[:4000])
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        read(bytes(data), rng.randint(1, 200))
