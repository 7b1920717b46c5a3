"""The first start without a key, in a real terminal: three ways to a model, and straight into the conversation."""

import json
import os
import re
import stat
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from stage import answer, text

from hypercode.errors import AuthError, ModelUnavailable
from hypercode.llm.local_engine import demo_weights, engine_folder
from hypercode.ui.first_start import check_key, key_in

KEY = "sk-or-v1-0123456789abcdef"
MISSING = "" if demo_weights() and engine_folder() else " (not installed)"
NOWHERE = {  # nobody on this machine or beyond it is asked
    "HYPERCODE_BASE_URL": "",
    "HYPERCODE_API_KEY": "",
    "HYPERCODE_MODEL": "",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "",
    "no_proxy": "",
}


def configured(stage, **settings):
    file = stage.home / "hypercode/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
    file.chmod(0o600)
    return file


def menu(chat):
    chat.wait("1, 2, 3, or q to leave:")
    return [line for line in chat.lines if re.match(r"  [123]  ", line)]


def test_a_pasted_key_is_kept_and_never_shown(stage):
    s = stage()
    file = configured(s, local_ports=[9], vi=True)
    with Chat(s, **NOWHERE) as chat:
        ways = menu(chat)
        assert chat.lines[0] == "hypercode needs a model to talk to, and there is no key for openrouter.ai yet."
        assert ways == [
            "  1  paste a key for openrouter.ai (made at https://openrouter.ai/keys)",
            "  2  a server on this machine: none found; start one, and look again",
            "  3  the tiny demo model: shows how hypercode works, answers poorly" + MISSING,
        ]
        chat.say("1")
        chat.wait("(not shown):")
        chat.say("short")
        chat.shows("! That is no key")
        chat.wait(lambda: chat.visible[-1].startswith("1, 2, 3"))
        chat.say("1")
        chat.wait(lambda: chat.visible[-1].endswith("(not shown):"))
        chat.say(f'export OPENROUTER_API_KEY="{KEY}"')
        chat.shows("The key could not be checked now", "Kept in", "readable for you alone")
        chat.prompt()
        assert "openrouter/auto" in chat.status
        chat.leave()
    assert KEY.encode() not in chat.raw
    assert tomllib.loads(file.read_text()) == {"api_key": KEY, "local_ports": [9], "vi": True}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Chat(s, **NOWHERE) as chat:
        chat.prompt()
        assert "no key" not in "\n".join(chat.lines)
        chat.leave()


def test_a_key_for_an_address_that_is_not_the_files_is_not_kept(stage):
    s = stage()
    file = configured(s, local_ports=[9])
    before = file.read_bytes()
    with Chat(s, "--base-url", "https://far.invalid/v1", **NOWHERE) as chat:
        assert menu(chat)[0] == "  1  paste a key for far.invalid"
        chat.say("1")
        chat.wait("the key for far.invalid (not shown):")
        chat.say(KEY)
        chat.shows("Used for this session; the address comes from --base-url")
        chat.prompt()
        chat.leave()
    assert file.read_bytes() == before


@pytest.mark.parametrize("way", ["q\r", "\x03", "\x04"])
def test_leaving(way, stage):
    s = stage()
    configured(s, local_ports=[9])
    with Chat(s, **NOWHERE) as chat:
        menu(chat)
        chat.say("7")
        chat.shows("! 1, 2, 3 or q")
        chat.wait(lambda: chat.visible[-1].startswith("1, 2, 3"))
        chat.send(way)
        assert chat.finish() == 0
    assert b"Traceback" not in chat.raw


def test_a_server_on_this_machine_goes_straight_into_the_conversation(stage):
    s = stage(answer(text("hello from here")))
    port = int(s.server.base_url.rpartition(":")[2].split("/")[0])
    configured(s, local_ports=[port])
    with Chat(s, "what is this?", "-m", "script/s", **NOWHERE) as chat:
        [_, server, _] = menu(chat)
        assert re.match(rf"  2  a server on this machine: a model server at 127.0.0.1:{port} \(\d+", server)
        chat.say("2")
        chat.shows("The next time: hypercode --local", "hello from here")
        chat.leave()
    [request] = s.requests()
    assert request["messages"][-1] == {"role": "user", "content": "what is this?"}


def test_a_server_that_is_started_meanwhile_is_found(stage):
    s = stage()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Models)
    configured(s, local_ports=[server.server_port])
    server.socket.close()
    with Chat(s, **NOWHERE) as chat:
        assert "none found" in menu(chat)[1]
        late = ThreadingHTTPServer(("127.0.0.1", server.server_port), _Models)
        threading.Thread(target=late.serve_forever, daemon=True).start()
        try:
            chat.say("2")
            chat.shows(f"a server on this machine: a model server at 127.0.0.1:{server.server_port} (1 model)")
        finally:
            late.shutdown()
            late.server_close()
        chat.send("\x04")
        assert chat.finish() == 0


class _Models(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "m"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_the_demo_model(stage):
    s = stage()
    configured(s, local_ports=[9])
    with Chat(s, **NOWHERE) as chat:
        menu(chat)
        chat.say("3")
        if MISSING:
            chat.shows("! The demo model is not installed.", "uv run --group local hypercode")
            chat.send("\x04")
            assert chat.finish() == 0
        else:
            chat.shows("Without a key: the embedded demo model")
            chat.prompt()
            chat.leave()


@pytest.mark.parametrize("words", [["run", "x"], ["a sentence that is a task"], ["-c"]])
def test_without_a_terminal_one_line_says_what_to_set(words, stage):
    s = stage()
    file = configured(s, local_ports=[9])
    done = s.run(*words, **NOWHERE)
    assert (done.returncode, done.stdout) == (2, "")
    if words != ["-c"]:
        assert done.stderr == (
            f"hypercode: {file}: api_key: there is no key for https://openrouter.ai/api/v1: export OPENROUTER_API_KEY=…, "
            "or set it in this file; a model on this machine needs none: --local\n"
        )


@pytest.mark.parametrize(
    ("pasted", "key"),
    [
        (KEY, KEY),
        (f"  {KEY}\n", KEY),
        (f"'{KEY}'", KEY),
        (f"export OPENROUTER_API_KEY={KEY}", KEY),
        (f'OPENROUTER_API_KEY = "{KEY}"', KEY),
        ("", None),
        ("1234567", None),
        ("two words here", None),
        ("sk-or-\x1b[31mred", None),
        ("schlüssel-lang", None),
    ],
)
def test_the_key_in_what_was_pasted(pasted, key):
    assert key_in(pasted) == key


@pytest.mark.parametrize(
    ("raised", "good", "words"),
    [
        (None, True, "The key is accepted."),
        (AuthError("no"), False, "openrouter.ai refused this key"),
        (ModelUnavailable("no route"), True, "The key could not be checked now: no route"),
        (TimeoutError(), True, "The key could not be checked now: no answer."),
    ],
)
async def test_a_refused_key_is_not_kept(raised, good, words):
    async def get_json(path):
        assert path == "/key"
        if raised is not None:
            raise raised
        return {"data": {}}

    found, said = await check_key(get_json)
    assert (found, said.startswith(words)) == (good, True), said


def test_the_file_is_made_private(stage):
    s = stage()
    os.umask(os.umask(0))
    with Chat(s, **NOWHERE) as chat:
        chat.wait("1, 2, 3, or q to leave:")
        chat.say("1")
        chat.wait(lambda: chat.visible[-1].endswith("(not shown):"))
        chat.say(KEY)
        chat.shows("Kept in")
        chat.prompt()
        chat.leave()
    file = s.home / "hypercode/config.toml"
    assert file.read_text() == f'api_key = "{KEY}"\n'
    assert [stat.S_IMODE(p.stat().st_mode) for p in (file, file.parent)] == [0o600, 0o700]
