"""Layers of configuration, errors that name file and key, and where a key may go."""

import os
from pathlib import Path

import pytest

from hypercode.config import Config, Folders, example, is_loopback, load, pick_key, setting_names
from hypercode.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def loaded(tmp_path, text="", *, flags=None, environ=None, project=None, profile=None):
    file = tmp_path / "config.toml"
    file.write_text(text)
    brought = None if project is None else (tmp_path / "project.toml", project.encode())
    return load(flags=flags or {}, environ=environ or {}, user_file=file, project=brought, profile=profile)


def test_flags_over_environment_over_file_over_default(tmp_path):
    text = 'model = "file"\nidle_timeout = 5\n'
    environ = {"HYPERCODE_MODEL": "env"}
    assert loaded(tmp_path).model == "openrouter/auto"
    assert loaded(tmp_path, text).model == "file"
    assert loaded(tmp_path, text, environ=environ).model == "env"
    config = loaded(tmp_path, text, environ=environ, flags={"model": "flag", "mode": None})
    assert (config.model, config.idle_timeout, config.mode) == ("flag", 5.0, "ask")
    assert config.sources["model"] == "--model"
    assert config.sources["idle_timeout"] == str(tmp_path / "config.toml")
    assert config.sources["mode"] == "default"


def test_a_missing_file_is_no_error(tmp_path):
    config = load(flags={}, environ={}, user_file=tmp_path / "none.toml")
    assert all(getattr(config, name) == getattr(Config(), name) for name in setting_names())


def test_list_flags_add_to_the_file(tmp_path):
    config = loaded(tmp_path, 'allow = ["git log"]', flags={"allow": ["make"], "deny": []})
    assert (config.allow, config.deny) == (["git log", "make"], [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modle = "x"', ["config.toml", "modle", "did you mean 'mode' or 'model'"]),
        ("model = 3", ["config.toml", "model", "must be a text"]),
        ("vi = 1", ["vi", "true or false"]),
        ("max_turns = true", ["max_turns", "whole number"]),
        ("max_turns = 0", ["max_turns", "at least 1"]),
        ("idle_timeout = nan", ["idle_timeout", "at least"]),
        ('mode = "yolo"', ["mode", "ask, edits, plan, auto"]),
        ("allow = [1]", ["allow", "list of texts"]),
        ('base_url = "openrouter.ai"', ["base_url", "not an http(s) URL"]),
        ("a = [", ["config.toml", "not valid TOML"]),
        ('a = "\x1b[2J', ["not valid TOML"]),
        ('[profiles.x]\nmodell = "y"', ["profiles.x.modell", "did you mean 'model' or"]),
    ],
)
def test_errors_name_file_and_key(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, profile="x" if "profiles" in text else None)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert "\x1b" not in message


def test_odd_files_end_in_an_error_at_once(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    big = tmp_path / "big.toml"
    big.write_text("#" * (2 << 20))
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'model = "\xe9"')
    for path, words in [(fifo, "regular"), (big, "1 MiB"), (latin, "UTF-8"), (tmp_path, "regular")]:
        with pytest.raises(ConfigError, match=words):
            load(flags={}, environ={}, user_file=path)


def test_a_project_may_choose_or_tighten_and_nothing_else(tmp_path):
    user = 'deny = ["rm"]\n'
    project = (
        'model = "p/m"\ndeny = ["curl"]\nbase_url = "http://evil.invalid"\napi_key = "x"\nmode = "auto"\n'
        'sandbox = false\nallow = ["bash"]\nadd_dirs = ["/"]\n[headers]\nX = "y"\n[hooks]\nstart = "touch x"\n'
    )
    config = loaded(tmp_path, user, project=project)
    fresh = Config()
    assert (config.model, config.deny) == ("p/m", ["rm", "curl"])
    for key in ("base_url", "api_key", "mode", "sandbox", "allow", "add_dirs", "headers"):
        assert getattr(config, key) == getattr(fresh, key)
    ignored = sorted(notice.split(": ")[1].split(" ")[0] for notice in config.notices)
    assert ignored == ["add_dirs", "allow", "api_key", "base_url", "headers", "hooks", "mode", "sandbox"]


def test_faults_of_profiles_that_are_not_chosen_are_said_and_keep_nobody_from_working(tmp_path):
    text = '[profiles.a]\nfoo = 1\n[profiles.b]\nmodel = 3\n[profiles.c]\nmodel = "c"\n'
    file = tmp_path / "config.toml"
    faults = [f"{file}: profiles.a.foo: there is no such setting", f"{file}: profiles.b.model: must be a text, not 3"]
    assert loaded(tmp_path, text).notices == faults
    chosen = loaded(tmp_path, text, profile="c")
    assert (chosen.model, chosen.notices) == ("c", faults)
    with pytest.raises(ConfigError, match=r"profiles\.a\.foo"):
        loaded(tmp_path, text, profile="a")


def test_profiles(tmp_path):
    text = 'api_key = "outer"\n[profiles.local]\nbase_url = "http://127.0.0.1:8080/v1"\nmodel = "m"\n'
    config = loaded(tmp_path, text, profile="local")
    assert (config.model, config.base_url) == ("m", "http://127.0.0.1:8080/v1")
    assert pick_key(config, {}) is None, "the key outside the profile belongs to another server"
    with pytest.raises(ConfigError, match="did you mean 'local'"):
        loaded(tmp_path, text, profile="locl")


OTHER = "https://other.invalid/v1"


@pytest.mark.parametrize(
    ("file", "environ", "flag", "key"),
    [
        ("", {"OPENROUTER_API_KEY": "or"}, None, "or"),
        ("", {"OPENROUTER_API_KEY": "or"}, OTHER, None),
        ("", {"OPENROUTER_API_KEY": "or", "HYPERCODE_API_KEY": "hc"}, OTHER, "hc"),
        ("", {"HYPERCODE_API_KEY": "hc"}, None, "hc"),
        ("", {"HYPERCODE_API_KEY": "hc", "HYPERCODE_BASE_URL": "https://mine.invalid"}, None, "hc"),
        ("", {"HYPERCODE_API_KEY": "hc", "HYPERCODE_BASE_URL": "https://mine.invalid"}, OTHER, None),
        ('base_url = "https://mine.invalid"', {"HYPERCODE_API_KEY": "hc"}, OTHER, None),
        ('api_key = "f"', {}, None, "f"),
        ('api_key = "f"', {}, OTHER, None),
        (f'api_key = "f"\nbase_url = "{OTHER}"', {}, None, "f"),
        (f'api_key = "f"\nbase_url = "{OTHER}"', {"HYPERCODE_BASE_URL": "https://x.invalid"}, None, None),
        ("", {"OPENROUTER_API_KEY": "or"}, "https://openrouter.ai.evil.invalid/api/v1", None),
        ("", {"OPENROUTER_API_KEY": "or"}, "http://openrouter.ai/api/v1", None),
        ("", {"OPENROUTER_API_KEY": "or"}, "https://openrouter.ai:444/api/v1", None),
    ],
)
def test_a_key_goes_only_to_the_server_it_belongs_to(tmp_path, file, environ, flag, key):
    config = loaded(tmp_path, file, environ=environ, flags={"base_url": flag})
    assert pick_key(config, environ) == key


LOCAL = "local = true\n"
URL = 'base_url = "http://127.0.0.1:9/v1"\n'


@pytest.mark.parametrize(
    ("file", "environ", "flags", "local"),
    [
        ("", {}, {}, False),
        ("", {}, {"local": True}, True),
        ("", {}, {"local_model": "m.gguf"}, True),
        (LOCAL, {}, {}, True),
        (LOCAL + URL, {}, {}, True),
        ('local_model = "m.gguf"\n', {}, {}, False),
        (LOCAL, {"HYPERCODE_BASE_URL": "http://127.0.0.1:9/v1"}, {}, False),
        (LOCAL, {}, {"base_url": "http://127.0.0.1:9/v1"}, False),
        ("", {"HYPERCODE_BASE_URL": "http://127.0.0.1:9/v1"}, {"local": True}, True),
        (URL, {}, {"local": True}, True),
        (LOCAL + "[profiles.p]\n" + URL, {}, {}, False),
        (URL + "[profiles.p]\n" + LOCAL, {}, {}, True),
    ],
)
def test_the_stronger_of_local_and_base_url_counts(tmp_path, file, environ, flags, local):
    profile = "p" if "profiles" in file else None
    assert loaded(tmp_path, file, flags=flags, environ=environ, profile=profile).local is local


@pytest.mark.parametrize("file", ["", 'local = true\nlocal_model = "n.gguf"\n'])
def test_a_model_and_a_file_on_the_command_line_are_one_too_many(tmp_path, file):
    path = tmp_path / "config.toml"
    path.write_text(file)
    with pytest.raises(ConfigError) as caught:
        load(flags={"local_model": "m.gguf", "model": "acme/x"}, environ={}, user_file=path)
    assert str(caught.value) == "-m: not with m.gguf (--local-model), itself a model"
    load(
        flags={"local_model": "m.gguf"}, environ={"HYPERCODE_MODEL": "acme/x"}, user_file=path
    )  # the stronger one counts


@pytest.mark.parametrize(
    ("file", "flags", "local"),
    [
        ('local = true\nlocal_model = "m.gguf"\n', {}, True),
        ('local_model = "m.gguf"\n', {}, False),
        ('local_model = "m.gguf"\n', {"local": True}, True),
        ('local = true\nlocal_model = "m.gguf"\n', {"base_url": "http://127.0.0.1:9/v1"}, False),
        ('[profiles.p]\nlocal = true\nlocal_model = "m.gguf"\n', {}, True),
    ],
)
def test_a_model_on_the_command_line_beats_the_file_of_a_model_in_a_file(tmp_path, file, flags, local):
    path = tmp_path / "config.toml"
    path.write_text(file)
    profile = "p" if "profiles" in file else None
    config = load(flags={**flags, "model": "acme/x"}, environ={}, user_file=path, profile=profile)
    assert (config.model, config.local_model, config.local) == ("acme/x", "", local)
    assert config.sources["local_model"] == "--model"
    config = load(flags=flags, environ={"HYPERCODE_MODEL": "acme/x"}, user_file=path, profile=profile)
    assert config.local_model == "m.gguf", "the environment names a model for servers, not against a file"


@pytest.mark.parametrize("key", ["add_dirs", "models", "allow", "deny", "keep_env", "listeners"])
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_text_in_a_list_is_refused_wherever_it_comes_from(tmp_path, key, empty):
    path = tmp_path / "config.toml"
    path.write_text(f'{key} = ["x", "{empty}"]\n')
    with pytest.raises(ConfigError) as caught:
        load(flags={}, environ={}, user_file=path)
    assert str(caught.value) == f"{path}: {key}: must be a list of texts, none of them empty"
    path.write_text("")
    with pytest.raises(ConfigError, match="none of them empty"):
        load(flags={key: [empty]}, environ={}, user_file=path)


@pytest.mark.parametrize(("first", "second"), [("X-a", "x-A"), ("authorization", "Authorization")])
@pytest.mark.parametrize("place", ["headers", "profiles.p.headers"])
def test_two_headers_that_differ_only_in_case_are_refused(tmp_path, first, second, place):
    path = tmp_path / "config.toml"
    path.write_text(f'[{place}]\n{first} = "1"\nX-other = "3"\n{second} = "2"\n')
    with pytest.raises(ConfigError) as caught:
        load(flags={}, environ={}, user_file=path, profile="p" if "." in place else None)
    assert str(caught.value) == f"{path}: {place}: {first!r} and {second!r} are the same header; leave one out"


@pytest.mark.parametrize("flags", [{"local": True}, {"local_model": "m.gguf"}])
def test_local_and_a_base_url_are_one_too_many(tmp_path, flags):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, flags={**flags, "base_url": "http://127.0.0.1:9/v1"})
    assert (
        str(caught.value) == f"--{next(iter(flags)).replace('_', '-')}: looks for a server itself; leave out --base-url"
    )


@pytest.mark.parametrize("ports", ["[0]", "[65536]", '["80"]', "[true]", "[8080.0]"])
def test_a_port_is_a_number(tmp_path, ports):
    with pytest.raises(ConfigError, match=r"config\.toml: local_ports: must be a list of port numbers$"):
        loaded(tmp_path, f"local_ports = {ports}")


def test_loopback():
    assert all(map(is_loopback, ["http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:8/v1", "http://127.9.9.9"]))
    assert not any(map(is_loopback, ["http://127.evil.invalid", "http://10.0.0.1", "http://localhost.evil.invalid"]))


def test_folders(tmp_path):
    folders = Folders.of({"HYPERCODE_HOME": str(tmp_path)})
    assert folders == Folders(tmp_path / "config.toml", tmp_path / "state", tmp_path / "cache")
    other = Folders.of({"HYPERCODE_HOME": str(tmp_path), "HYPERCODE_CONFIG": "/x/c.toml"})
    assert other == Folders(Path("/x/c.toml"), tmp_path / "state", tmp_path / "cache")


def test_the_example_file_is_what_the_code_documents(tmp_path):
    assert EXAMPLE.read_text() == example()


def test_every_line_of_the_example_is_a_setting_with_its_default(tmp_path):
    lines = [line.removeprefix("# ") for line in EXAMPLE.read_text().split("# [profiles")[0].split("\n")]
    settings = [line for line in lines if line.split(" = ")[0] in setting_names() and " = " in line]
    uncommented = "\n".join(settings)
    config = loaded(tmp_path, uncommented)
    fresh = Config()
    for name in setting_names():
        assert getattr(config, name) == getattr(fresh, name)
    unset = [line.removesuffix(" =") for line in lines if line.endswith(" =")]
    named = {line.split(" = ")[0] for line in settings} | set(unset) | {"profiles"}
    assert named == set(setting_names())


@pytest.mark.parametrize(
    "line", ["extra_body = {d = 2026-01-01}", "temperature = inf", "reasoning = {x = nan}", "headers = {a = [inf]}"]
)
def test_what_no_request_can_carry_is_refused_where_it_stands(tmp_path, line):
    file = tmp_path / "config.toml"
    file.write_text(line + "\n")
    with pytest.raises(ConfigError) as raised:
        load(flags={}, environ={}, user_file=file)
    assert str(raised.value).startswith(f"{file}: {line.split(' ')[0]}: no dates and no infinite numbers")
