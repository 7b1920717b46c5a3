"""The composition root."""

import logging
import os

import pytest

from hypercode.app import build
from hypercode.config import Config, setting_names
from hypercode.errors import ConfigError
from hypercode.events import Notice
from hypercode.llm.fake import ScriptedModel
from hypercode.logfile import open_log
from hypercode.parts import model_settings
from hypercode.safety import sandbox
from hypercode.safety.redact import Redactor
from hypercode.safety.sandbox import Box


def config(**settings):
    made = Config(sources=dict.fromkeys(setting_names(), "test"))
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def built(tmp_path, **settings):
    environ = {"HOME": str(tmp_path), "HYPERCODE_HOME": str(tmp_path / "hypercode"), "PATH": os.environ["PATH"]}
    (tmp_path / "work").mkdir(exist_ok=True)
    return build(config(**settings), cwd=tmp_path / "work", environ=environ, complete=ScriptedModel([]).complete)


def test_mode_auto_needs_the_full_box(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox.Box, "probe", classmethod(lambda cls, policy, env: Box.none(policy, "None here.")))
    with pytest.raises(ConfigError, match=r"None here.*--no-sandbox"):
        built(tmp_path, mode="auto")
    assert not built(tmp_path, mode="auto", sandbox=False).gate.boxed


async def test_what_is_told_of_an_earlier_run_is_told_once_and_is_no_fault_of_the_configuration(tmp_path, monkeypatch):
    """What a killed command had left is found when the box is looked for, which may be long after the start."""
    left = "A hook was made while the command ran."
    probe = classmethod(lambda cls, policy, environment: cls("none", policy, "None here.", "", (left,)))
    monkeypatch.setattr(sandbox.Box, "probe", probe)
    app, told = built(tmp_path), []
    app.bus.on(Notice, told.append)
    app.start()
    await app.box_ready()
    await app.box_ready()
    assert told == [Notice("warning", left)]
    assert app.config.notices == []


async def test_the_box_is_looked_for_once(tmp_path, monkeypatch):
    probes = []

    def probe(cls, policy, environment):
        probes.append(policy)
        return Box.none(policy, "None here.")

    monkeypatch.setattr(sandbox.Box, "probe", classmethod(probe))
    app = built(tmp_path)
    assert probes == [], "not before it is needed"
    await app.box_ready()
    await app.box_ready()
    assert len(probes) == 1
    assert "every command asks" in app.box_said


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"add_dirs": ["/nowhere/at/all"]}, "^test: add_dirs: /nowhere/at/all is not a folder$"),
        ({"add_dirs": ["/"]}, "^test: add_dirs: / is the whole disk: .* name the folders that are meant$"),
        ({"add_dirs": ["/etc/../usr/.."]}, "is the whole disk"),
        ({"add_dirs": ["/dev"]}, "^test: add_dirs: /dev is the kernel's, not a disk's: "),
        ({"add_dirs": ["~nobody-of-that-name/x"]}, "~nobody-of-that-name/x is not a folder"),
        ({"add_dirs": ["/proc/self"]}, "is the kernel's"),
        ({"allow": [""]}, "allow"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, settings, words):
    with pytest.raises(ConfigError, match=words):
        built(tmp_path, **settings)


def test_model_settings():
    made = model_settings(config(provider={"sort": "price"}, idle_timeout=5.0), {"OPENROUTER_API_KEY": "k"})
    assert (made.api_key, made.extra_body, made.idle_timeout) == ("k", {"provider": {"sort": "price"}}, 5.0)
    assert made.first_event_timeout == 120.0
    only_idle = config(idle_timeout=5.0)
    only_idle.sources["first_event_timeout"] = "default"
    assert model_settings(only_idle, {"OPENROUTER_API_KEY": "k"}).first_event_timeout == 5.0
    with pytest.raises(ConfigError, match="there is no key for"):
        model_settings(config(), {})
    with pytest.raises(ConfigError, match="plain http"):
        model_settings(config(base_url="http://far.invalid/v1"), {"HYPERCODE_API_KEY": "k"})
    for server in ("http://127.0.0.1:1/v1", "http://192.168.1.5:8000/v1"):
        assert model_settings(config(base_url=server), {}).api_key is None


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"X Team": "a"}, r'test: headers."X Team": is no name of an HTTP header'),
        ({"X-Team\nHost": "a"}, r'test: headers."X-Team\nHost": is no name'),
        ({"X-Größe": "a"}, r'test: headers."X-Gr\u00f6\u00dfe": is no name'),
        ({"": "a"}, r'test: headers."": is no name'),
        ({"X:": "a"}, r'test: headers."X:": is no name'),
        ({"Content-Length": "3"}, "test: headers.Content-Length: is set for each request by itself"),
        ({"X-A": "ok", "X-B": "one\ntwo"}, "test: headers.X-B: has a value that no HTTP header can carry"),
        ({"X-B": " a"}, "test: headers.X-B: has a value"),
        ({"X-B": "größe"}, "test: headers.X-B: has a value"),
        ({"X-B": ["a"]}, "test: headers.X-B: must be a text"),
        ({"X-B": True}, "test: headers.X-B: must be a text"),
    ],
)
def test_a_header_that_no_request_can_carry_is_refused(headers, words):
    with pytest.raises(ConfigError) as caught:
        model_settings(config(headers=headers), {"OPENROUTER_API_KEY": "k"})
    assert str(caught.value).startswith(words)


def test_headers_that_can_be_carried_are():
    made = config(headers={"X-Team": "a b\tc", "x.y!#$%&'*+^_`|~": "", "X-Number": 7, "Authorization": "Bearer z"})
    sent = {"X-Team": "a b\tc", "x.y!#$%&'*+^_`|~": "", "X-Number": "7", "Authorization": "Bearer z"}
    assert model_settings(made, {"OPENROUTER_API_KEY": "k"}).headers == sent


@pytest.mark.parametrize("key", ["sk-\u201ca", "sk a", "sk\x07a"])
def test_a_key_that_no_header_can_carry_is_refused(key):
    with pytest.raises(ConfigError, match=r"^OPENROUTER_API_KEY: the key for \S+ has") as caught:
        model_settings(config(), {"OPENROUTER_API_KEY": key})
    assert key not in str(caught.value)


def test_the_log_has_no_secret_not_even_in_a_traceback(tmp_path):
    secret = "sk-or-v1-0123456789abcdef0123456789abcdef"
    environ = {"HYPERCODE_HOME": str(tmp_path)}
    log = logging.getLogger("hypercode")
    with open_log(environ, debug=True, redact=Redactor([secret]).text) as path:
        log.debug("headers: %s", {"Authorization": f"Bearer {secret}"})
        try:
            raise ValueError(f"refused {secret}")
        except ValueError:
            log.exception("failed")
    text = path.read_text()
    assert "refused" in text
    assert secret not in text
    assert path.stat().st_mode & 0o777 == 0o600
