"""What is said of a complete answer: another model gave it, no cache was read for it."""

from __future__ import annotations

from typing import Any

import pytest

from hypercode.llm.oddities import Oddities, same_model
from hypercode.llm.settings import ModelSettings
from hypercode.messages import EARLIER, Message, Reply, user

SONNET = "anthropic/claude-sonnet-4"
ASKED = ModelSettings(extra_body={"cache_control": {"type": "ephemeral"}})
LOCAL = "http://127.0.0.1:1/v1"
UNASKED = (
    f"{SONNET} read nothing from its cache, so the whole request is billed; "
    'cache_control = {type = "ephemeral"} in the configuration asks for it.'
)
UNREAD = (
    f"{SONNET} read nothing from its cache, though cache_control asks for it, so the whole request is billed; "
    "a cache lasts for minutes, and at one provider only, which session_id in the configuration keeps."
)


def conversation(replies: int, first: str = "q0") -> list[Message]:
    said = [m for n in range(replies) for m in (user(f"q{n}" if n else first), {"role": "assistant", "content": "a"})]
    return [{"role": "system", "content": "s"}, *said, user(f"q{replies}" if replies else first)]


def answer(cached: int | None, tokens: int = 5_000, model: str | None = None) -> Reply:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return Reply(usage={"prompt_tokens": tokens, **details}, model=model)


def told(
    oddities: Oddities, settings: ModelSettings, replies: int, reply: Reply, model: str = SONNET, **more: Any
) -> str:
    return "|".join(notice.text for notice in oddities.of(settings, model, reply, conversation(replies, **more)))


@pytest.mark.parametrize(("settings", "text"), [(ModelSettings(), UNASKED), (ASKED, UNREAD)])
def test_a_cache_that_stays_unread_is_said_once_in_a_conversation(settings, text):
    for turns, cached in (
        ((1, 2, 3), (0, 0, 0)),  # from the second turn
        ((1, 2, 3), (None, 0, 0)),  # or later, where the server did not say before
        ((7, 8), (0, 0)),  # or later, in a conversation that goes on
    ):
        oddities = Oddities()
        assert told(oddities, settings, 0, answer(0)) == ""
        said = [told(oddities, settings, turn, answer(n)) for turn, n in zip(turns, cached, strict=True)]
        assert said == [text if n == cached.index(0) else "" for n in range(len(turns))]


def test_a_cache_that_was_read_does_not_stay_unread():
    oddities = Oddities()
    assert [told(oddities, ASKED, n, answer(cached)) for n, cached in ((1, 900), (2, 0), (3, 0))] == [""] * 3


def test_each_conversation_is_told_of_its_own_cache():
    oddities = Oddities()
    assert told(oddities, ASKED, 1, answer(0)) == UNREAD
    assert told(oddities, ASKED, 1, answer(0), first="another") == UNREAD
    assert told(oddities, ASKED, 2, answer(0)) == ""
    assert told(oddities, ASKED, 0, answer(0)) == ""  # begins with the same words, and is a new one
    assert told(oddities, ASKED, 1, answer(0)) == UNREAD
    assert told(oddities, ASKED, 0, answer(0), first="<record> …") == ""  # the request for a summary
    assert told(oddities, ASKED, 1, answer(0), first=f"{EARLIER} …]") == ""  # the same one, made shorter


def test_a_new_model_has_no_cache_yet():
    oddities = Oddities()
    assert told(oddities, ASKED, 1, answer(900), "other/model") == ""
    oddities = Oddities()
    assert told(oddities, ASKED, 1, answer(0), "other/model") == ""
    assert told(oddities, ASKED, 2, answer(0)) == ""
    assert told(oddities, ASKED, 3, answer(0)) == UNREAD


@pytest.mark.parametrize(
    ("model", "answered", "tokens", "extra", "said"),
    [
        ("other/model", None, 5_000, {}, ""),
        (SONNET, None, 10, {}, "cache_control = {"),
        (SONNET, None, 1_023, ASKED.extra_body, ""),
        (SONNET, None, 1_024, ASKED.extra_body, "though cache_control asks"),
        ("anthropic/claude-haiku-4.5", None, 4_095, ASKED.extra_body, ""),
        ("anthropic/claude-opus-4.5", None, 4_096, ASKED.extra_body, "though cache_control asks"),
        (SONNET, None, 5_000, {**ASKED.extra_body, "session_id": "s"}, "at one provider only."),
        ("openrouter/auto", "anthropic/claude-sonnet-4.5", 5_000, {}, "anthropic/claude-sonnet-4.5 read nothing"),
        ("openrouter/auto", "openai/gpt-5", 5_000, {}, ""),
        ("claude-sonnet-4", None, 5_000, {}, "claude-sonnet-4 read nothing"),
    ],
)
def test_whose_cache_is_meant(model, answered, tokens, extra, said):
    text = told(Oddities(), ModelSettings(extra_body=extra), 1, answer(0, tokens, answered), model)
    assert said in text if said else text == ""


@pytest.mark.parametrize("settings", [ModelSettings(), ASKED])
@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "5000", "prompt_tokens_details": "none"},
        {"prompt_tokens": 5_000, "prompt_tokens_details": [0]},
        {"prompt_tokens": 5_000, "prompt_tokens_details": {"cached_tokens": None}},
        {"prompt_tokens": 5_000, "prompt_tokens_details": {"cached_tokens": "0"}},
        {"prompt_tokens": 5_000, "prompt_tokens_details": {"cached_tokens": False}},
        {},
        None,
    ],
)
def test_counts_that_are_none_say_nothing(settings, usage):
    assert told(Oddities(), settings, 1, Reply(usage=usage)) == ""


def test_without_the_size_of_the_prompt_it_may_be_too_small_for_a_cache():
    usage = {"prompt_tokens": "many", "prompt_tokens_details": {"cached_tokens": 0}}
    assert [told(Oddities(), s, 1, Reply(usage=usage)) for s in (ModelSettings(), ASKED)] == [UNASKED, ""]


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("openai/gpt-4o", "openai/gpt-4o-2024-08-06", True),
        ("gpt-4o", "openai/gpt-4o", True),
        ("openai/gpt-4", "openai/gpt-4-0613", True),
        ("anthropic/claude-sonnet-4", "anthropic/claude-4-sonnet-20250522", True),
        ("anthropic/claude-3.5-sonnet", "claude-3-5-sonnet-20241022", True),
        ("claude-sonnet-4@20250514", "claude-sonnet-4", True),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", True),
        ("deepseek/deepseek-r1", "deepseek/deepseek-r1-0528:free", True),
        ("deepseek/deepseek-r1-0528", "deepseek/deepseek-r1-20250528", True),
        ("google/gemini-2.0-flash", "google/gemini-2.0-flash-001", True),
        ("cohere/command-r", "cohere/command-r-08-2024", True),
        ("qwen/qwen3-32b", "Qwen/Qwen3-32B", True),
        ("llama3.2", "llama3.2:latest", True),
        ("openai/gpt-4o", "openai/gpt-4o-mini", False),
        ("openai/gpt-4o-2024-08-06", "openai/gpt-4o-2024-11-20", False),
        ("meta-llama/llama-3.1-70b", "meta-llama/llama-3.1-8b", False),
        ("qwen:7b", "qwen:14b", False),
        ("anthropic/claude-sonnet-4", "anthropic/claude-sonnet-4.5", False),
        ("openai/o3", "openai/o4", False),
        ("a", "b", False),
    ],
)
def test_forms_of_one_name(asked, answered, same):
    assert (same_model(asked, answered), same_model(answered, asked)) == (same, same)


@pytest.mark.parametrize(
    ("settings", "model", "answered", "said"),
    [
        (ModelSettings(), "openai/gpt-4o", "openai/gpt-4o-mini", "Answered by openai/gpt-4o-mini, not openai/gpt-4o."),
        (ModelSettings(), "openai/gpt-4o", "openai/gpt-4o-2024-08-06", ""),
        (ModelSettings(), "openai/gpt-4o", None, ""),
        (ModelSettings(), "openrouter/auto", "openai/gpt-4o", ""),
        (ModelSettings(), "~anthropic/claude-sonnet-latest", "anthropic/claude-sonnet-4.6", ""),
        (ModelSettings(), "openai/gpt-4o@preset/mine", "x/y", ""),
        (ModelSettings(), "a/b", "c" * 200, f"Answered by {'c' * 119}…, not a/b."),
        (ModelSettings(base_url=LOCAL), "qwen", "/models/qwen-7b.gguf", ""),
        (ModelSettings(base_url=LOCAL), "qwen", "some-alias", ""),
        (ModelSettings(base_url=LOCAL, fallbacks=("b",)), "a", "b", "Answered by b, not a."),
        (ModelSettings(base_url=LOCAL, fallbacks=("b",)), "a", "/models/a-7b.gguf", ""),
        (ModelSettings(base_url=LOCAL, fallbacks=("b",)), "a", "some-alias", ""),
        (ModelSettings(base_url=LOCAL, model="a", fallbacks=("b",)), "b", "a", "Answered by a, not b."),
    ],
)
def test_another_model_is_said_once(settings, model, answered, said):
    oddities = Oddities()
    notices = [n for _ in range(3) for n in oddities.of(settings, model, Reply(model=answered), conversation(0))]
    assert [(n.level, n.text) for n in notices] == ([("info", said)] if said else [])


def test_each_other_model_is_said():
    oddities = Oddities()
    said = [
        told(oddities, ModelSettings(), n, Reply(model=name), "a/a") for n, name in enumerate(("b/b", "c/c", "b/b"))
    ]
    assert said == ["Answered by b/b, not a/a.", "Answered by c/c, not a/a.", ""]


def test_a_fallback_is_said_each_time():
    oddities = Oddities()
    settings = ModelSettings(fallbacks=("z/cheap",))
    said = [oddities.of(settings, "a/a", Reply(model="z/cheap-20250101"), conversation(n)) for n in range(2)]
    assert [(n.level, n.text) for notices in said for n in notices] == [
        ("warning", "a/a could not answer; this answer is by z/cheap-20250101.")
    ] * 2
