"""Conversations for servers whose chat templates want the roles in order."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypercode.llm.roles import ALTERNATION, SYSTEM, reordered, roles_refused

Message = dict[str, Any]
S, U, V, A = (
    {"role": role, "content": text}
    for role, text in (("system", "S"), ("user", "u"), ("user", "v"), ("assistant", "a"))
)
CALLS = {"role": "assistant", "content": "c", "tool_calls": [{"id": "1"}]}
TOOL = {"role": "tool", "tool_call_id": "1", "content": "t"}
GAP = {"role": "assistant", "content": "…"}


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ([S, U, A, V], [S, U, A, V]),
        ([S, U, V], [S, {"role": "user", "content": "u\n\nv"}]),
        ([U, CALLS, TOOL, V], [U, CALLS, TOOL, GAP, V]),
        ([U, CALLS, TOOL, A, V], [U, CALLS, TOOL, A, V]),
        ([U, A, CALLS, TOOL, A, V], [U, A, CALLS, TOOL, {"role": "user", "content": "…"}, A, V]),
        ([S, A, U], [S, {"role": "user", "content": "…"}, A, U]),
        ([U, A, A, V], [U, {"role": "assistant", "content": "a\n\na"}, V]),
        (
            [U, {"role": "user", "content": [{"type": "text", "text": "p"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "u"}, {"type": "text", "text": "p"}]}],
        ),
        ([], []),
    ],
)
def test_the_order_that_strict_templates_want(sent: list[Message], wanted: list[Message]) -> None:
    before = copy.deepcopy(sent)
    assert reordered(sent, frozenset({ALTERNATION})) == wanted
    assert sent == before


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ([S, U, A], [{"role": "user", "content": "S\n\nu"}, A]),
        ([U, A], [U, A]),
        ([S], [S]),
        ([S, A, U], [A, {"role": "user", "content": "S\n\nu"}]),
    ],
)
def test_what_a_system_message_says_can_be_said_by_the_person(sent: list[Message], wanted: list[Message]) -> None:
    assert reordered(sent, frozenset({SYSTEM})) == wanted


@given(st.lists(st.sampled_from([S, U, V, A, CALLS, TOOL])))
def test_nothing_is_lost_and_the_order_is_kept(sent: list[Message]) -> None:
    result = reordered(sent, frozenset({ALTERNATION}))
    counted = [m["role"] for m in result if m["role"] in ("user", "assistant") and not m.get("tool_calls")]
    assert counted == [("user", "assistant")[n % 2] for n in range(len(counted))]
    assert "".join(m["content"] for m in result).replace("\n\n", "").replace("…", "") == "".join(
        m["content"] for m in sent
    )
    assert reordered(result, frozenset({ALTERNATION})) == result


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", ALTERNATION),
        ("After the optional system message, conversation roles must alternate user and assistant roles", ALTERNATION),
        (
            "messages: roles must alternate between user and assistant, but found multiple user roles in a row",
            ALTERNATION,
        ),
        ("user or tool message(s) should alternate with assistant message(s)", ALTERNATION),
        ("Jinja Exception: System role not supported", SYSTEM),
        ("This model does not support system messages", SYSTEM),
        ("'system' role is not supported", SYSTEM),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", SYSTEM),
        ("The model is overloaded", None),
        ("system overload, retry", None),
        ("the file system is not supported", None),
    ],
)
def test_a_refusal_is_known_by_its_words_where_another_order_would_help(said: str, refused: str | None) -> None:
    assert roles_refused(said, [S, U, V], frozenset()) == refused
    assert roles_refused(said, [S, U, V], frozenset({ALTERNATION, SYSTEM})) is None
    assert roles_refused(said, [U, A], frozenset()) is None
