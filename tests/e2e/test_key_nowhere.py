"""The key that the program was given is nowhere but in its requests: not on the screen, in no output, file or process."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from key_forms import FORMS, KEY
from stage import answer, call, text

from hypercode.safety import own_process

GONE = "[redacted: key]"


def hits(data):
    """The forms of the key that some bytes, or JSON inside them, hold."""
    found = [name for name, form in FORMS.items() if form.encode() in data or form[:-1].encode() in data]
    return found + [f"{name} in JSON" for name, form in FORMS.items() if json.dumps(form)[1:-1].encode() in data]


def files_below(folder):
    """Every file that the program made, but the copies that /undo keeps of the person's own."""
    return [p for p in folder.rglob("*") if p.is_file() and "undo" not in p.parts]


def joined(shown):
    """With one mark for a key: a piece of less than eight characters may have been shown before it was known for one, and
    the last character of base64 is not the key's alone."""
    return re.sub(r"[\w%-]{0,7}\[redacted: key\]w?", GONE, shown)


def cut(words, rng):
    places = sorted(rng.choices(range(len(words) + 1), k=rng.randint(1, 12)))
    return [words[a:b] for a, b in zip([0, *places], [*places, len(words)], strict=True)]


def scene(stage, form, seed=1):
    """The key in a reply, in thinking, in arguments, in a file that a command prints, and in the person's words."""
    rng = random.Random(seed)
    arguments = json.dumps({"command": f"cat notes.txt; printf '%s' '{form}'; echo '{form}' >&2; touch t"})
    head = {"index": 0, "id": "c1", "type": "function", "function": {"name": "bash", "arguments": ""}}
    pieces = [{"tool_calls": [{"index": 0, "function": {"arguments": p}}]} for p in cut(arguments, rng)]
    first = [
        *({"reasoning": piece} for piece in cut(f"I think {form} is a key. ", rng)),
        *map(text, cut(f"It is {form}, I say {form}", rng)),
        {"tool_calls": [head]},
        *pieces,
    ]
    s = stage(answer(*first, finish="tool_calls"), answer(*map(text, cut(f"Again {form} zzdone", rng))))
    (s.workspace / "notes.txt").write_text(f"KEY={form}\n{form}{form}\n")
    return s


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
@pytest.mark.parametrize("form", FORMS)
def test_a_run_prints_and_keeps_no_key(stage, form, output):
    secret = FORMS[form]
    s = scene(stage, secret, seed=form + output)
    options = ["--output", output, "--mode", "auto", "--no-sandbox", "--debug"]
    done = s.run("run", f"my key is {secret}", *options, HYPERCODE_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert (hits(done.stdout.encode()), hits(done.stderr.encode())) == ([], [])
    assert GONE in done.stdout
    if output == "text":
        assert joined(done.stdout) == f"It is {GONE}, I say {GONE}\n\nAgain {GONE} zzdone\n"
    kept = files_below(s.home / "hypercode")
    assert {p.suffix for p in kept} >= {".jsonl", ".log"}
    assert {str(p): hits(p.read_bytes()) for p in kept if hits(p.read_bytes())} == {}
    second = s.requests()[1]["messages"]
    assert json.dumps(second).count(json.dumps(secret)[1:-1]) >= 6, "the conversation itself stays as it is"


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_a_thousand_splits_in_one_reply(stage, output):
    rng = random.Random(output)
    forms = [rng.choice(list(FORMS.values())) for _ in range(1000)]
    pieces = [piece for form in forms for piece in cut(f"<{form}> ", rng)]
    done = stage(answer(*map(text, pieces))).run("run", "go", "--output", output, HYPERCODE_API_KEY=KEY)
    if output == "jsonl":
        events = [json.loads(line) for line in done.stdout.splitlines()]
        shown = "".join(e["text"] for e in events if e["type"] == "text_delta")
        whole = next(e["message"]["content"] for e in events if e["type"] == "assistant_message")
        assert joined(whole) == f"<{GONE}> " * 1000
    else:
        shown = json.loads(done.stdout)["text"] if output == "json" else done.stdout
    assert shown.count(GONE) == 1000
    assert hits(shown.encode()) == []
    assert KEY[8:] not in shown


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_repeats_the_key_it_refuses(stage, form):
    words = "x" * 380 + f" Incorrect API key provided: {FORMS[form]}. Find it at {KEY}."
    refused = answer() | {
        "http": {"status": 401, "headers": {"Content-Type": "application/json"}},
        "segments": [{"bytes": json.dumps({"error": {"message": words}})}],
    }
    s = stage(refused, refused, refused)
    for output in ("text", "jsonl"):
        done = s.run("run", "go", "--output", output, "--debug", HYPERCODE_API_KEY=KEY)
        assert done.returncode == 1
        assert "Incorrect API key" in done.stdout + done.stderr
        assert KEY[:14] not in done.stdout + done.stderr, "no part of it either, where the words are cut"
        assert hits((done.stdout + done.stderr).encode()) == []
    listed = s.run("models", "--refresh", HYPERCODE_API_KEY=KEY)
    assert hits((listed.stdout + listed.stderr).encode()) == []
    assert [p for p in files_below(s.home / "hypercode") if hits(p.read_bytes())] == []


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_chat_draws_no_key(stage, form, plain):
    s = scene(stage, FORMS[form])
    with Chat(s, *(["--plain"] if plain else []), "--no-sandbox", columns=200, rows=50, HYPERCODE_API_KEY=KEY) as chat:
        chat.prompt().say("go")
        chat.wait("yes, once")
        assert GONE in "\n".join(chat.lines)
        chat.send("y\r" if plain else "y")
        chat.shows("zzdone")
        if not plain:
            chat.idle()
        chat.say("/raw")
        chat.wait(lambda: "\n".join(chat.lines).count(" zzdone") == 2)
        if not plain:
            chat.send("\x0f")
            chat.wait(lambda: "\n".join(chat.lines).count(f"KEY={GONE}") == 2)
        chat.leave()
        assert hits(bytes(chat.raw)) == []
        assert hits("\n".join(chat.lines).encode()) == []
    assert [p for p in files_below(s.home / "hypercode") if hits(p.read_bytes())] == []


def test_the_person_s_own_commands_and_waiting_messages(stage):
    s = stage(answer(text("one two"), close="hang"))
    (s.workspace / "notes.txt").write_text(f"KEY={KEY}\n")
    with Chat(s, columns=200, HYPERCODE_API_KEY=KEY) as chat:
        chat.prompt().say("!cat notes.txt")
        chat.shows(f"KEY={GONE}")
        chat.idle()
        chat.say("hi")
        chat.wait("one two")
        before = len(chat.raw)
        chat.say(f"see {KEY}")
        chat.wait(f"next model call: see {GONE}")
        chat.send("\x03")
        chat.shows("[aborted]")
        assert KEY.encode() not in chat.raw[:before]
        chat.send("\x03")
        chat.leave()


def test_settings_are_shown_without_what_is_secret(stage):
    s = stage()
    folder = s.home / "hypercode"
    folder.mkdir()
    headers = f'headers = {{ X-Api-Key = "{KEY[9:]}", X-Title = "at home" }}'
    (folder / "config.toml").write_text(f'api_key = "{KEY}"\n{headers}\n[profiles.p]\napi_key = "{KEY}"\n')
    shown = s.run("config", "show", HYPERCODE_API_KEY="", OPENROUTER_API_KEY="sk-or-v1-aaaabbbbccccddddeeeeffff")
    assert hits(shown.stdout.encode()) == []
    assert KEY[9:] not in shown.stdout
    assert "at home" in shown.stdout


PLAIN = "sk-or-v1-4f0cb2d9e17a65c3840fb21d7e9a06c58f13b7"


@pytest.mark.parametrize("wrong", [f'api_key = ["{PLAIN}"]', f'mode = "{PLAIN}"', f'base_url = "{PLAIN}"'])
def test_a_key_in_the_wrong_place_is_not_quoted(stage, wrong):
    s = stage()
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/config.toml").write_text(wrong + "\n")
    done = s.run("run", "x", HYPERCODE_API_KEY="", HYPERCODE_BASE_URL="")
    assert done.returncode == 2
    assert PLAIN not in done.stdout + done.stderr
    assert "[redacted: provider key]" in done.stderr


# -- processes -------------------------------------------------------------------------

LOOK = """
import os, sys
from pathlib import Path
key = bytes.fromhex(sys.argv[1])
found = []
for folder in Path("/proc").glob("[0-9]*"):
    for name in ("environ", "cmdline"):
        try:
            if key in (folder / name).read_bytes():
                found.append(f"{name} of {(folder / 'cmdline').read_bytes()[:60]}")
        except OSError:
            pass
print("FOUND", found, os.environ.get("HYPERCODE_API_KEY"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("box", [["--no-sandbox"], []])
def test_no_process_shows_the_key(stage, box):
    """Neither the program, whose first environment the kernel keeps, nor what it starts."""
    key = f"sk-{random.Random().getrandbits(128):032x}"
    s = stage(answer(call("bash", {"command": f"python3 look.py {key.encode().hex()}"}, "c")), answer(text("ok")))
    (s.workspace / "look.py").write_text(LOOK)
    command = [str(Path(sys.executable).with_name("hypercode")), "run", "go", "--mode", "auto", *box]
    done = subprocess.run(
        command, cwd=s.workspace, env=s.environment(HYPERCODE_API_KEY=key), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert s.requests()[1]["messages"][-1]["content"] == "FOUND [] None"


OWN = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import own_process
environ = own_process.take_environment()
own_process.close_to_others()
environment = open(f"/proc/{os.getpid()}/environ", "rb").read() if os.geteuid() == 0 else b""
look = f"cat /proc/{os.getpid()}/environ; cat /proc/{os.getpid()}/maps; env"
seen = subprocess.run(["/bin/sh", "-c", look], capture_output=True).stdout
r, w = os.pipe()
key = environ["HYPERCODE_API_KEY"].encode()
print(key.decode(), key in environment, key in seen, b"r-xp" in seen, os.readlink(f"/proc/self/fd/{r}")[:5], os.environ["KEPT"])
"""


@pytest.mark.skipif(sys.platform != "linux" or not Path("/usr/bin/python3").exists(), reason="needs /proc and a python")
@pytest.mark.parametrize("user", ["me", "other"])
def test_the_environment_and_memory_of_the_program(user, tmp_path_factory):
    if user == "other" and (os.geteuid() != 0 or not shutil.which("setpriv")):
        pytest.skip("needs root and setpriv")
    place = Path("/var/tmp") / f"own-{random.getrandbits(64):x}"
    place.mkdir()
    try:
        shutil.copy(own_process.__file__, place)
        switch = ["setpriv", "--reuid=61236", "--regid=61236", "--clear-groups"] if user == "other" else []
        done = subprocess.run(
            [*switch, "/usr/bin/python3", "-c", OWN, str(place)],
            env={"PATH": os.defpath, "HYPERCODE_API_KEY": "the-very-key", "KEPT": "kept"},
            capture_output=True,
            text=True,
            check=False,
        )
        root = user == "me" and os.geteuid() == 0
        assert done.stdout == f"the-very-key False False {root} pipe: kept\n", done.stderr
    finally:
        shutil.rmtree(place)
