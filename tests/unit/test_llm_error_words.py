"""What an error says → which one it is: the words of many servers, and words that are like them."""

from __future__ import annotations

from typing import Any

import pytest

from hypercode.errors import ContextOverflow, ModelUnavailable, QuotaError
from hypercode.llm.error_words import error_class, wait_of

OVERFLOWS = [
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 1024 `max_new_tokens`",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Invalid request: Your request exceeded model token limit: 131072",
    "Input token length too long",
    "Range of input length should be [1, 30720]",
    "Prompt exceeds max length",
    "prompt token count of 200000 exceeds the limit of 128000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Requested generation length 1 is not possible! The provided prompt is 5000 tokens long, so generating 1 tokens requires a sequence length of 5001, but the maximum supported sequence length is just 4096!",
    "Requested input length 40000 exceeds maximum input length 32767",
    "Total tokens of image and text exceed max message tokens",
    "Total tokens exceed the model limit",
    "input is too big compared to KV size",
    "prompt too big compared to KV size, try again",
    "the request exceeds the available context size, try increasing it",
    "too many tokens: total number of tokens in the prompt cannot exceed 4096 - received 5000. Try using a shorter prompt",
    "Input is too long for requested model.",
    "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    "Prompt has 9000 tokens, exceeding the model's limit",
    "Input length (40000 tokens) exceeds the maximum allowed length (32763 tokens). Use a shorter input or enable --allow-auto-truncate.",
    "Prompt length (5000) exceeds maximum input length (4096).",
    "the max length of the question is 2000",
    "invalid params, context window exceeds limit (2013)",
    "The estimated number of input and maximum output tokens (40000) exceeded this model context window limit (24000).",
    "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 32768 tokens and your request has 30000 input tokens (8000 > 32768 - 30000).",
    "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1205483 instead. string_above_max_length",
    "Request body too large for gpt-4o model. Max size: 8000 tokens. tokens_limit_reached",
    "The prompt is 5,000 tokens, which exceeds the model's maximum of 4096 tokens",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Conversation is too long for this model's context",
    "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
    "Requested token count exceeds the model's maximum context length of 32768 tokens.",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "The number of tokens in the prompt exceeds the maximum number of tokens",
    "token count exceeds the maximum number of tokens",
    "prompt tokens too long",
]
OTHERS = [
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude",
    "max_tokens (100000) exceeds the maximum number of tokens allowed for this model",
    "max_tokens=100000 cannot be greater than max_model_len=max_total_tokens=32768. Please request fewer output tokens.",
    "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
    "max_completion_tokens is too large for the model's context length",
    "`max_new_tokens` must be <= 512. Given: 1024",
    "Range of max_tokens should be [1, 8192]",
    "The number of output tokens exceeds the maximum",
    "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 70 instead. string_above_max_length",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead. array_above_max_length",
    "tool name exceeds maximum length of 64 characters",
    "Invalid input: function name exceeds max length 64",
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again",
    "Too many tokens, please wait before trying again.",
    "Rate limit reached: total tokens exceed the limit per minute",
    "Invalid token",
    "Unexpected token < in JSON at position 0",
    "temperature must be less than 2",
    "Input image exceeds the maximum size of 20 MB",
    "stop sequence is too long",
    "The description's length must be at most 1024",
    "Your request exceeded the rate limit: 60 requests per minute",
    "max_output_tokens must be at least 16",
    "tokenizer not found",
]


@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
@pytest.mark.parametrize("said", OVERFLOWS)
def test_a_conversation_that_is_too_long(said: str, status: int | None) -> None:
    assert error_class(status, "invalid_request_error", said) is ContextOverflow


@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
@pytest.mark.parametrize("said", OTHERS)
def test_a_long_answer_a_long_field_and_a_limit_per_minute_are_none(said: str, status: int | None) -> None:
    assert error_class(status, "invalid_request_error", said) is not ContextOverflow


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_where_the_status_says_what_it_is_words_do_not(status: int) -> None:
    assert error_class(status, "", OVERFLOWS[0]) is not ContextOverflow


PLAN = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("hints", "said", "wait", "kind"),
    [
        ("exceeded_current_quota_error", "Your account is suspended, please check your plan", None, QuotaError),
        ("exceeded_current_quota_error", "Your account a <b> is not active.", None, QuotaError),
        ("insufficient_quota", PLAN, None, QuotaError),
        ("insufficient_quota", PLAN, 5.0, QuotaError),
        ("", "Please check your billing.", None, QuotaError),
        ("1113", "余额不足或无可用资源包,请充值。", None, QuotaError),
        ("Arrearage", "Access denied, please make sure your account is in good standing.", None, QuotaError),
        ("RESOURCE_EXHAUSTED", PLAN, None, QuotaError),
        ("RESOURCE_EXHAUSTED", f"{PLAN} See https://docs.example/rate-limits.", None, QuotaError),
        # a limit per minute, whatever it says of money
        ("RESOURCE_EXHAUSTED", PLAN, 35.0, ModelUnavailable),
        ("", "Limit: 3 / min. Please try again in 20s. Check billing to increase it.", None, ModelUnavailable),
        ("", "Rate limit exceeded. See https://docs.example/billing", None, ModelUnavailable),
        ("", "Too Many Requests", None, ModelUnavailable),
    ],
)
def test_quotas(hints: str, said: str, wait: float | None, kind: type[Exception]) -> None:
    assert error_class(429, hints, said, wait) is kind


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "35.5s"}


@pytest.mark.parametrize(
    ("error", "headers", "status", "wait"),
    [
        ({"details": [{"@type": "x"}, RETRY_INFO]}, None, 429, 35.5),
        ({"details": [RETRY_INFO]}, {"Retry-After": "3"}, 429, 3.0),
        ({"details": "x"}, None, 429, None),
        ({"details": [None, {"retryDelay": 3}]}, None, 429, None),
        ({}, {"X-RateLimit-Reset": "20"}, 429, 20.0),
        ({}, {"X-RateLimit-Reset": "20"}, 503, 20.0),
        ({}, {"X-RateLimit-Reset": "20", "Retry-After": "3"}, 429, 3.0),
        ({}, {"X-RateLimit-Reset": "20"}, 500, None),
        ({"retry_after": 2}, {"X-RateLimit-Reset": "20"}, 429, 2.0),
    ],
)
def test_waits(error: dict[str, Any], headers: dict[str, str] | None, status: int, wait: float | None) -> None:
    assert wait_of(error, {}, headers, status) == wait
    assert wait_of(error, {"headers": headers}, None, status) == wait
