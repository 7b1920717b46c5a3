"""The model list: the shapes of servers, the copy on disk, the search."""

import json
import os
import stat

import pytest

from hypercode.errors import ModelUnavailable, RequestRejected
from hypercode.llm.catalog import COLUMNS, Catalog, cached, load, rows, search, table
from hypercode.llm.client import Client
from hypercode.llm.model_entry import Model, parse_models
from hypercode.llm.settings import ModelSettings
from hypercode.testing import FaultServer

URL = "https://models.example.org/v1"
DAY = 86_400.0

SONNET = {
    "id": "anthropic/claude-sonnet",
    "name": "Anthropic: Claude Sonnet",
    "context_length": 1_000_000,
    "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
    "pricing": {"prompt": "0.000003", "completion": "0.000015", "image": "0"},
    "top_provider": {"context_length": 1_000_000, "max_completion_tokens": 64_000},
    "supported_parameters": ["max_tokens", "tools", "reasoning"],
    "reasoning": {"supported_efforts": ["high", "low"]},
}


class Server:
    """Answers `get_json` from a list of answers; an exception is raised."""

    def __init__(self, *answers):
        self.answers, self.paths = list(answers), []

    async def get_json(self, path):
        self.paths.append(path)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def listing(*ids):
    return {"data": [{"id": i} for i in ids]}


# -- entries ---------------------------------------------------------------------------


def test_an_openrouter_entry():
    models, odd = parse_models({"data": [SONNET]})
    assert odd == 0
    assert models == [
        Model(
            "anthropic/claude-sonnet",
            "Anthropic: Claude Sonnet",
            1_000_000,
            64_000,
            0.000003,
            0.000015,
            tools=True,
            reasoning=True,
            input_modalities=("text", "image"),
            efforts=("high", "low"),
        )
    ]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131072}, "aliases": ["m", "short"]}, {"context": 8192, "aliases": ("short",)}),
        ({"id": "m", "meta": {"n_ctx_train": 131072}}, {"context": 131072}),
        ({"id": "m", "max_model_len": 32768}, {"context": 32768}),
        (
            {"id": "m", "type": "vlm", "max_context_length": 32768, "loaded_context_length": 4096, "capabilities": ["tool_use"]},
            {"context": 4096, "tools": True, "reasoning": False, "input_modalities": ("text", "image")},
        ),
        (
            {
                "key": "m",
                "type": "llm",
                "display_name": "M",
                "max_context_length": 131072,
                "loaded_instances": [{"id": "m", "config": {"context_length": 8000}}, {"id": "m:2", "config": {"context_length": 4000}}],
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            },
            {"name": "M", "context": 4000, "tools": True, "reasoning": None},
        ),
        ({"id": "m", "object": "model", "created": 1, "owned_by": "library"}, {}),
        ({"name": "m", "model": "m", "details": {"context_length": 4096}, "capabilities": ["completion", "tools", "thinking"]}, {"context": 4096, "tools": True, "reasoning": True}),
        ({"id": "m", "context_window": 131072, "max_completion_tokens": 32768}, {"context": 131072, "max_output": 32768}),
        ({"name": "models/m", "displayName": "M", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}, {"name": "M", "context": 1048576, "max_output": 65536}),
        ({"id": "m", "max_context_length": 32768, "capabilities": {"function_calling": True, "vision": True}}, {"context": 32768, "tools": True, "input_modalities": ("text", "image")}),
        ({"id": "m", "pricing": {"prompt": "-1", "completion": "-1"}}, {}),
        ({"id": "m", "pricing": {"prompt": "0", "completion": 0}}, {"price_prompt": 0.0, "price_completion": 0.0}),
    ],
    ids=["llama.cpp", "llama.cpp unloaded", "vllm", "lm studio", "lm studio 1", "ollama", "ollama tags", "groq", "google", "mistral", "router", "free"],
)  # fmt: skip
def test_other_servers(entry, expected):
    models, odd = parse_models({"object": "list", "data": [entry]})
    assert odd == 0
    assert models == [Model(**{"id": "m", "name": "m"} | expected)]


@pytest.mark.parametrize(
    "entry",
    [
        None,
        7,
        [],
        {},
        {"id": None},
        {"id": ""},
        {"id": 7},
        {"id": "a\x1b[31m"},
        {"id": "a\nb"},
        {"id": "a\u202eb"},
        {"id": "x" * 400},
    ],
)
def test_entries_that_are_none(entry):
    assert parse_models({"data": [{"id": "good"}, entry]}) == ([Model("good", "good")], 1)


@pytest.mark.parametrize(
    "odd",
    [
        {"context_length": None, "pricing": None, "architecture": None, "top_provider": None},
        {"context_length": -5, "pricing": [], "architecture": "x", "top_provider": 7, "meta": []},
        {"context_length": True, "pricing": {"prompt": None, "completion": {}}, "supported_parameters": "tools"},
        {"context_length": "many", "pricing": {"prompt": "cheap", "completion": "NaN"}, "aliases": {"a": 1}},
        {"context_length": float("nan"), "pricing": {"prompt": "inf", "completion": True}, "reasoning": [1]},
        {"context_length": 10**400, "pricing": {"prompt": 10**400, "completion": "1e400"}, "loaded_instances": [7, {}]},
        {"context_length": [], "name": {"x": 1}, "capabilities": 7, "loaded_instances": {"config": 1}},
    ],
)
def test_odd_values_are_unknown(odd):
    assert parse_models({"data": [{"id": "m", **odd}]}) == ([Model("m", "m")], 0)


def test_lists_of_other_kinds():
    assert parse_models({"models": ["a", {"name": "b"}]}) == ([Model("a", "a"), Model("b", "b")], 0)
    assert parse_models({"data": None, "models": [{"id": "a"}]})[0] == [Model("a", "a")]
    assert parse_models({"data": {}}) == parse_models({}) == ([], 0)
    assert [m.id for m in parse_models(listing("a", "b", "a"))[0]] == ["a", "b"]
    others = [{"id": "e", "type": "embeddings"}, {"id": "i", "architecture": {"output_modalities": ["image"]}}]
    assert parse_models({"data": [*others, {"id": "a"}]}) == ([Model("a", "a")], 0)


def test_a_name_holds_nothing_a_terminal_obeys():
    ((model,), _) = parse_models({"data": [{"id": "m", "name": "Evil\x1b]0;x\x07\u202e  name\nsecond"}]})
    assert model.name == "Evil?]0;x?? name second"


# -- the copy on disk ------------------------------------------------------------------


async def test_it_is_asked_once_a_day(tmp_path):
    server = Server({"data": [SONNET]}, listing("later"))
    first = await load(server.get_json, URL, tmp_path, now=lambda: 1000.0)
    assert (first.stale, first.notices, first.fetched) == (False, (), 1000.0)
    assert await load(server.get_json, URL, tmp_path, now=lambda: 1000.0 + DAY - 1) == first
    assert server.paths == ["/models"]
    later = await load(server.get_json, URL, tmp_path, now=lambda: 1000.0 + DAY)
    assert [m.id for m in later.models] == ["later"]
    assert server.paths == ["/models"] * 2


async def test_refresh_asks_at_once(tmp_path):
    server = Server(listing("a"), listing("b"))
    await load(server.get_json, URL, tmp_path, now=lambda: 1.0)
    assert (await load(server.get_json, URL, tmp_path, now=lambda: 2.0, refresh=True)).models == (Model("b", "b"),)


async def test_a_server_on_this_machine_is_asked_again_after_a_minute(tmp_path):
    local = "http://127.0.0.1:8080/v1"
    server = Server(listing("a"), listing("b"))
    await load(server.get_json, local, tmp_path, now=lambda: 0.0)
    assert (await load(server.get_json, local, tmp_path, now=lambda: 59.0)).models == (Model("a", "a"),)
    assert (await load(server.get_json, local, tmp_path, now=lambda: 61.0)).models == (Model("b", "b"),)


@pytest.mark.parametrize(("age", "words"), [(3 * DAY, "3 days old"), (DAY, "1 day old"), (-500.0, "of unknown age")])
async def test_offline_the_old_list_is_used_and_that_is_said(tmp_path, age, words):
    server = Server({"data": [SONNET]}, ModelUnavailable("cannot reach the server. Check the network."))
    old = await load(server.get_json, URL, tmp_path, now=lambda: 1000.0)
    new = await load(server.get_json, URL, tmp_path, now=lambda: 1000.0 + age)
    assert (new.models, new.stale, new.fetched) == (old.models, True, 1000.0)
    assert new.notices == (
        f"models.example.org could not be asked for its models (cannot reach the server); the list is {words}.",
    )
    assert cached(tmp_path, URL) == old


async def test_offline_without_a_list_the_error_is_the_answer(tmp_path):
    with pytest.raises(RequestRejected):
        await load(Server(RequestRejected("no")).get_json, URL, tmp_path)
    assert cached(tmp_path, URL) is None


async def test_each_base_url_has_its_own(tmp_path):
    await load(Server(listing("a")).get_json, URL, tmp_path, now=lambda: 1.0)
    other = await load(Server(listing("b")).get_json, URL + "/", tmp_path, now=lambda: 1.0)
    assert [m.id for m in other.models] == ["b"]
    assert [m.id for m in cached(tmp_path, URL).models] == ["a"]


async def test_the_copy_is_private_and_replaced_whole(tmp_path):
    old = os.umask(0)
    try:
        await load(Server({"data": [SONNET]}).get_json, URL, tmp_path / "cache", now=lambda: 1.0)
    finally:
        os.umask(old)
    (file,) = (tmp_path / "cache" / "models").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text())["base_url"] == URL
    assert cached(tmp_path / "cache", URL).models == tuple(parse_models({"data": [SONNET]})[0])


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version":1}',
        b'{"version":99}',
        "link",
        "folder",
        "fifo",
        "open",
        "types",
    ],
    ids=str,
)
async def test_a_damaged_copy_is_asked_for_again(tmp_path, damage):
    await load(Server({"data": [SONNET]}).get_json, URL, tmp_path, now=lambda: 1.0)
    (file,) = (tmp_path / "models").iterdir()
    text = file.read_text()
    if damage == "open":
        file.chmod(0o666)
    elif damage == "types":
        file.write_text(text.replace("1000000", '"much"'))
    else:
        file.unlink()
        if damage == "link":
            (tmp_path / "elsewhere").write_text(text)
            file.symlink_to(tmp_path / "elsewhere")
        elif damage == "folder":
            file.mkdir()
        elif damage == "fifo":
            os.mkfifo(file)
        else:
            file.write_bytes(damage)
    assert cached(tmp_path, URL) is None
    again = await load(Server(listing("new")).get_json, URL, tmp_path, now=lambda: 2.0)
    assert [m.id for m in again.models] == ["new"]
    if damage == "folder":
        assert "could not be kept" in again.notices[0]


async def test_a_cache_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "models").write_text("a file in the way")
    made = await load(Server(listing("a")).get_json, URL, tmp_path, now=lambda: 1.0)
    assert made.models == (Model("a", "a"),)
    assert "could not be kept" in made.notices[0]


async def test_pages_are_followed_on_the_same_server(tmp_path):
    first = {**listing("a"), "links": {"next": "https://evil.example.org/api/v1/models?offset=1&limit=1"}}
    second = {**listing("b", "a"), "links": {"next": "/api/v1/models?offset=1&limit=1"}}
    server = Server(first, second)
    made = await load(server.get_json, URL, tmp_path)
    assert [m.id for m in made.models] == ["a", "b"]
    assert server.paths == ["/models", "/models?offset=1&limit=1"], "a page is asked for once"


async def test_entries_left_out_are_said(tmp_path):
    made = await load(Server({"data": [{"id": "a"}, {}, 7]}).get_json, URL, tmp_path)
    assert made.notices == ("2 entries of the model list could not be understood and are left out.",)


async def test_over_a_real_socket(tmp_path):
    with FaultServer() as server:
        client = Client(ModelSettings(base_url=server.base_url, model="cut", api_key="k"))
        try:
            made = await load(client.get_json, server.base_url, tmp_path)
            assert made.find("cut").id == "cut"
        finally:
            await client.aclose()
    client = Client(ModelSettings(base_url=server.base_url, api_key="k"))
    try:
        later = await load(client.get_json, server.base_url, tmp_path, refresh=True)
        assert later.stale
        assert later.models == made.models
    finally:
        await client.aclose()


# -- looking through it ----------------------------------------------------------------

MODELS = tuple(
    Model(i, n)
    for i, n in [
        ("anthropic/claude-sonnet-4.5", "Claude Sonnet 4.5"),
        ("anthropic/claude-opus-4.1", "Claude Opus 4.1"),
        ("openai/gpt-5-mini", "GPT-5 Mini"),
        ("openai/gpt-5", "GPT-5"),
        ("qwen/qwen3-coder:free", "Qwen3 Coder (free)"),
        ("qwen/qwen3-coder", "Qwen3 Coder"),
        ("mistralai/devstral-small", "Devstral Small"),
    ]
)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", [m.id for m in MODELS]),
        ("gpt-5", ["openai/gpt-5", "openai/gpt-5-mini"]),
        ("mini gpt", ["openai/gpt-5-mini"]),
        ("CLAUDE opus", ["anthropic/claude-opus-4.1"]),
        ("coder", ["qwen/qwen3-coder", "qwen/qwen3-coder:free"]),
        ("free", ["qwen/qwen3-coder:free"]),
        ("sonet", ["anthropic/claude-sonnet-4.5"]),
        ("gpt5", ["openai/gpt-5", "openai/gpt-5-mini"]),
        ("dvstrl", ["mistralai/devstral-small"]),
        ("zzz", []),
        (".*", []),
    ],
)
def test_search(words, found):
    assert [m.id for m in search(MODELS, words)] == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("openai/gpt-5", "openai/gpt-5"),
        ("openai/gpt-5:nitro", "openai/gpt-5"),
        ("qwen/qwen3-coder:free", "qwen/qwen3-coder:free"),
        ("openai/gpt-5:q4", None),
        ("openai/gpt", None),
        ("", None),
    ],
)
def test_find(name, found):
    model = Catalog("https://openrouter.ai/api/v1", MODELS, 0.0).find(name)
    assert (model.id if model else None) == found


def test_find_on_a_server_with_one_model():
    one = Model("/data/big.gguf", "big", aliases=("big",))
    local = Catalog("http://127.0.0.1:8080/v1", (one,), 0.0)
    assert local.find("big") is local.find("whatever") is one
    assert Catalog("http://127.0.0.1:8080/v1", (one, *MODELS), 0.0).find("whatever") is None
    assert Catalog("https://openrouter.ai/api/v1", (one,), 0.0).find("whatever") is None
    ollama = Catalog("http://127.0.0.1:11434/v1", (Model("qwen3:latest", "q"), Model("qwen3:8b", "q")), 0.0)
    assert ollama.find("qwen3").id == "qwen3:latest"


def test_rows_and_table():
    models = [
        *parse_models({"data": [SONNET]})[0],
        Model("m", "M", 8192, price_prompt=0.0, price_completion=4e-8, tools=False),
    ]
    assert rows(models) == [
        ("anthropic/claude-sonnet", "1M", "64k", "3.00", "15.00", "tools reasoning image"),
        ("m", "8k", "?", "free", "0.040", "no tools"),
    ]
    assert rows([Model("x", "x")]) == [("x", "?", "?", "?", "?", "")]
    assert table(models) == [
        "model                    context  output  $/M in  $/M out  abilities",
        "anthropic/claude-sonnet       1M     64k    3.00    15.00  tools reasoning image",
        "m                             8k       ?    free    0.040  no tools",
    ]
    assert table([]) == ["  ".join(COLUMNS)]


def test_a_search_through_many():
    many = [Model(f"vendor{n % 40}/model-{n}-large", f"Vendor: Model {n} Large") for n in range(2_000)]
    assert search(many, "vendor7 large 1207")[0].id == "vendor7/model-1207-large"
