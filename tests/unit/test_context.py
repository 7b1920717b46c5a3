"""The meter: the server's own count where there is one, an estimate marked as such where not; the parts of a request."""

import json

import pytest

from hypercode.memory.context import Meter, Reading, parts, prompt_parts, system_prompt
from hypercode.memory.shorten import note
from hypercode.memory.tokens import estimate, overflow_numbers, tokens_of, tokens_of_tools
from hypercode.messages import attached, ran, system, tool_result, user

TOOLS = [{"type": "function", "function": {"name": "read", "description": "d" * 350, "parameters": {}}}]


def meter(window=10_000, **options):
    made = Meter()
    made.use(window, **options)
    return made


# -- the reading -----------------------------------------------------------------------


def test_the_servers_own_count_is_shown_as_it_is():
    made = meter()
    made.sent([user("x" * 3500)])
    made.answered({"prompt_tokens": 1234, "completion_tokens": 66})
    assert made.reading == Reading(1300, 10_000, estimated=False)
    assert (str(made.reading), made.reading.percent) == ("13% of 10k", 13)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": None}, {"prompt_tokens": "many"}])
def test_only_where_the_server_says_nothing_it_is_an_estimate(usage):
    made = meter()
    made.sent([user("x" * 3486)])
    made.answered(usage)
    assert made.reading == Reading(1000, 10_000, estimated=True)
    assert str(made.reading) == "~10% of 10k"


def test_counts_that_were_guessed_elsewhere_are_marked_too():
    made = meter()
    made.sent([user("x" * 3500)])
    made.answered({"prompt_tokens": 900, "completion_tokens": 100, "estimated": True})
    assert str(made.reading) == "~10% of 10k"


def test_an_unknown_window_is_not_invented():
    made = meter(None)
    assert str(made.reading) == "0 tokens"
    made.sent([user("hello")])
    made.answered({"prompt_tokens": 12_345})
    assert (str(made.reading), made.reading.percent, made.room) == ("12.3k tokens", None, None)
    made.use(1_000_000)
    assert str(made.reading) == "2% of 1M", "the window came later"


def test_until_the_server_has_said_the_reading_is_what_was_estimated_of_the_request():
    made = meter()
    made.sent([user("x" * 3486)])
    assert (str(made.reading), made.reading.tokens) == ("~10% of 10k", 1000)
    made.answered({"prompt_tokens": 2000, "completion_tokens": 100})
    made.sent([user("x" * 7000)])
    assert str(made.reading) == "21% of 10k", "the last that the server has said"
    made.changed([user("x" * 350)])
    made.sent([user("x" * 350)])
    assert made.reading.estimated


def test_after_a_change_nothing_the_server_said_holds():
    made = meter()
    made.sent([user("x" * 7000)])
    made.answered({"prompt_tokens": 4000})
    made.changed([user("x" * 3486)])
    assert made.reading.estimated
    assert made.reading.tokens == 1000 * 4000 // 2004 + 1, "the estimate is corrected by what the server counted"
    made.changed([])
    assert made.reading == Reading(0, 10_000, estimated=False)


def test_estimates_follow_the_servers_count():
    made = meter()
    history = [user("x" * 7000), tool_result("a", "y" * 7000)]
    assert made.request(history) == sum(map(tokens_of, history)) == 4008
    made.sent(history)
    made.answered({"prompt_tokens": 6012})
    assert made.request(history) == 6012
    assert made.count(history[0]) == 3006
    made.sent(history)
    made.answered({"prompt_tokens": 10**9})
    assert made.request(history) == 4 * 4008, "what cannot be is not believed"
    made.use(10_000)
    assert made.request(history) == 4008, "another model counts in its own way"


@pytest.mark.parametrize(
    ("options", "output", "room"),
    [
        ({"window": 100_000}, 8_192, 91_808),
        ({"window": 100_000, "max_output": 4_000}, 4_000, 96_000),
        ({"window": 100_000, "max_output": 64_000}, 8_192, 91_808),
        ({"window": 100_000, "max_tokens": 30_000, "max_output": 4_000}, 30_000, 70_000),
        ({"window": 8_000}, 2_000, 6_000),
        ({"window": 8_000, "max_tokens": 50_000}, 50_000, 1_000),
        ({"window": None}, 8_192, None),
    ],
)
def test_the_answer_needs_room_too(options, output, room):
    made = meter(**options)
    assert (made.output, made.room) == (output, room)


# -- what servers say ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "window", "sent"),
    [
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 192871 tokens.",
            4097,
            192871,
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens "
            "(150000 of text input, 50000 in the output). Please reduce the length",
            131072,
            150000,
        ),
        (
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens "
            "(122942 in the messages, 8192 in the completion).",
            131072,
            122942,
        ),
        ("request (9025 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 9025),
        ("prompt is too long: 202095 tokens > 200000 maximum", 200000, 202095),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1200000),
        ("maximum context length is 200,000 tokens", 200000, None),
        ("the request exceeds the available context size, try increasing it", None, None),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
        ("prompt is too long", None, None),
        ("", None, None),
        ("9" * 5000, None, None),
    ],
)
def test_numbers_in_a_refusal(said, window, sent):
    assert overflow_numbers(said) == (window, sent)


def test_a_refusal_teaches_the_window_and_the_size():
    made = meter(200_000)
    made.sent([user("x" * 35_000)])
    assert made.overflowed("request (12000 tokens) exceeds the available context size (8192 tokens)")
    assert made.window == 8192
    assert made.request([user("x" * 35_000)]) == pytest.approx(12_600, abs=5)
    assert not made.overflowed("too long")
    assert made.window == 8192
    assert made.overflowed("maximum context length is 100000 tokens")
    assert made.window == 8192, "a window does not grow by a refusal"


# -- estimates -------------------------------------------------------------------------


def test_everything_that_is_sent_counts():
    plain = tokens_of({"role": "assistant", "content": "x" * 350})
    assert plain == 104
    call = {"id": "a", "type": "function", "function": {"name": "write", "arguments": json.dumps({"c": "y" * 700})}}
    assert tokens_of({"role": "assistant", "content": None, "tool_calls": [call]}) > 200
    assert (
        tokens_of({"role": "assistant", "content": "x" * 350, "reasoning_details": [{"data": "z" * 700}]}) > plain + 200
    )
    assert tokens_of(user("日本語" * 100)) > 250
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    assert tokens_of({"role": "user", "content": [{"type": "text", "text": "See"}, image]}) < 2_000
    assert estimate("") == tokens_of_tools([]) == 0
    assert tokens_of_tools(TOOLS) > 100


def test_parts_add_up_to_the_request(tmp_path):
    made = meter()
    prompt = prompt_parts(tmp_path, instructions="i" * 350, skills="s" * 700)
    history = [
        user("x" * 346),
        {"role": "assistant", "content": "y" * 696},
        tool_result("a", "z" * 1396),
        note("What was."),
    ]
    found = parts(prompt, TOOLS, history, made)
    assert list(found) == [
        "system prompt",
        "skills",
        "instructions",
        "tools",
        "you",
        "replies",
        "tool results",
        "summary",
    ]
    assert (found["skills"], found["instructions"]) == (200, 100)
    assert [found[k] for k in ("you", "replies", "tool results")] == [103, 203, 403]
    whole = made.request([system("".join(prompt.values())), *history], TOOLS)
    assert abs(sum(found.values()) - whole) <= 8
    made.sent([user("x" * 7000)])
    made.answered({"prompt_tokens": 4008})
    assert parts(prompt, TOOLS, history, made)["skills"] == 400
    assert parts({}, [], [], made) == {}


def test_the_prompt_keeps_what_it_had(tmp_path):
    text = system_prompt(tmp_path)
    assert f"Workspace: {tmp_path}\n" in text
    assert "plan mode" not in text
    assert system_prompt(tmp_path, plan=True).startswith(text)


def test_attached_files_are_a_part_of_their_own():
    made = meter()
    data = "x" * 3500
    said = user("look @a" + attached([("a", data)]))
    found = parts({}, [], [said, user(ran("ls", data))], made)
    assert list(found) == ["attached files", "you"]
    assert found["attached files"] == 1001
    assert sum(found.values()) == made.count(said) + made.count(user(ran("ls", data)))
