"""`hypercode models`: table and JSON, search, cache, offline, foreign text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from list_server import ListServer
from stage import HYPERCODE

MODELS = {
    "data": [
        {
            "id": "acme/small",
            "name": "Acme: Small",
            "context_length": 128_000,
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "supported_parameters": ["tools", "reasoning"],
            "architecture": {"input_modalities": ["text", "image"]},
        },
        {"id": "acme/large", "name": "Acme: Large\x1b]0;owned\x07\u202e", "context_length": 1_000_000},
        {
            "id": "other/free:free",
            "name": "Free",
            "pricing": {"prompt": "0", "completion": "0"},
            "supported_parameters": [],
        },
    ]
}
KEPT = {"HYPERCODE_API_KEY": "sk-test-not-a-key"}


@pytest.fixture
def server():
    with ListServer({"/models": MODELS}) as made:
        yield made


def models(stage, server, *arguments, **environment):
    return stage.run("models", *arguments, HYPERCODE_BASE_URL=server.base_url, **environment)


def test_the_table(stage, server):
    done = models(stage(), server)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["model", "context", "output", "$/M", "in", "$/M", "out", "abilities"],
        ["acme/small", "128k", "?", "1.00", "2.00", "tools", "reasoning", "image"],
        ["acme/large", "1M", "?", "?", "?"],
        ["other/free:free", "?", "?", "free", "free", "no", "tools"],
    ]
    assert server.keys == ["Bearer sk-test-not-a-key"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["acme"], ["acme/small", "acme/large"]),
        (["acme", "large"], ["acme/large"]),
        (["LARGE acme"], ["acme/large"]),
        (["nothing"], []),
        ([], ["acme/small", "acme/large", "other/free:free"]),
    ],
)
def test_words_and_json(stage, server, words, found):
    done = models(stage(), server, *words, "--json")
    answer = json.loads(done.stdout)
    assert sorted(m["id"] for m in answer["models"]) == sorted(found)
    assert (answer["base_url"], answer["stale"], answer["notices"]) == (server.base_url, False, [])
    assert done.returncode == 0
    if not words:
        assert answer["models"][0] == {
            "id": "acme/small",
            "name": "Acme: Small",
            "context": 128_000,
            "max_output": None,
            "price_prompt": 1e-06,
            "price_completion": 2e-06,
            "tools": True,
            "reasoning": True,
            "input_modalities": ["text", "image"],
            "efforts": [],
            "aliases": [],
        }


def test_nothing_that_matches_is_said(stage, server):
    done = models(stage(), server, "zzz")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"No model of {server.base_url} matches 'zzz'.\n"


def test_the_list_is_kept_refreshed_and_used_offline(stage, server):
    s = stage()
    first = models(s, server)
    server.answers["/models"] = {"data": [{"id": "new/one"}]}
    assert models(s, server).stdout == first.stdout, "kept"
    assert len(server.asked) == 1
    assert "new/one" in models(s, server, "--refresh").stdout
    assert len(server.asked) == 2
    server.answers["/models"] = (503, {"error": {"message": "down for repairs", "code": 503}})
    done = models(s, server, "--refresh")
    assert done.returncode == 0
    assert "new/one" in done.stdout
    assert done.stderr.startswith("warning: ")
    assert "could not be asked for its models" in done.stderr
    assert "old." in done.stderr
    assert json.loads(models(s, server, "--refresh", "--json").stdout)["stale"] is True


def test_no_server_and_nothing_kept_is_one_line(stage, server):
    server.answers["/models"] = (503, {"error": {"message": "down\x1b[31m for repairs", "code": 503}})
    done = models(stage(), server)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr, "\x1b" in done.stderr) == (1, "", False, False)
    assert "for repairs" in done.stderr


def test_nothing_in_the_list_reaches_the_terminal_as_a_command(stage, server):
    hostile = "evil\x1b]52;c;eA==\x07\x9b31m\u202e"
    server.answers["/models"] = {"data": [{"id": hostile}, {"id": "good", "name": hostile}]}
    done = models(stage(), server, "--refresh")
    told = done.stdout + done.stderr
    assert "good" in done.stdout
    assert "1 entries of the model list could not be understood" in done.stderr
    assert not [c for c in told if c != "\n" and not c.isprintable()]


def test_without_a_key_the_list_is_asked_for_all_the_same(stage, server):
    done = models(stage(), server, HYPERCODE_API_KEY="")
    assert done.returncode == 0
    assert server.keys == ["Bearer no-key"]


def test_options_may_stand_before_the_command(stage, server):
    done = stage().run("--base-url", server.base_url, "models", "small", HYPERCODE_BASE_URL="")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["model", "acme/small"]


def test_a_reader_that_goes_away_is_no_fault(stage, server):
    import subprocess

    from stage import HYPERCODE

    s = stage()
    server.answers["/models"] = {"data": [{"id": f"m{n:05}"} for n in range(20_000)]}
    done = subprocess.run(
        ["/bin/sh", "-c", f"{HYPERCODE} models | head -1"],
        env=s.environment(HYPERCODE_BASE_URL=server.base_url),
        cwd=s.workspace,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split()[0], done.stderr) == ("model", "")


def local_port(stage, *servers):
    """Lets `--local` look for just these servers."""
    s = stage()
    (s.home / "hypercode").mkdir()
    ports = [int(server.base_url.split(":")[2].split("/")[0]) for server in servers]
    (s.home / "hypercode" / "config.toml").write_text(f"local_ports = {ports or [1]}\n")
    return s, ports


def test_local_lists_the_servers_on_this_machine(stage, server):
    with ListServer({"/models": {"data": [{"id": "tiny:1b", "context_length": 8192}]}}) as other:
        s, ports = local_port(stage, server, other)
        done = s.run("models", "--local")
        assert done.returncode == 0
        assert done.stderr == "".join(f"a model server at 127.0.0.1:{port}:\n" for port in ports)
        rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("model ")]
        assert [(row[0], row[1]) for row in rows] == [
            ("acme/small", "128k"),
            ("acme/large", "1M"),
            ("other/free:free", "?"),
            ("tiny:1b", "8k"),
        ]
        done = s.run("--local", "models", "tiny", "--json")
        [model] = json.loads(done.stdout)["models"]
        assert (model["id"], model["server"], model["base_url"]) == (
            "tiny:1b",
            f"a model server at 127.0.0.1:{ports[1]}",
            other.base_url,
        )
        done = s.run("models", "--local", "tiny")
        assert done.stderr.splitlines()[0] == f"a model server at 127.0.0.1:{ports[0]}: no model matches 'tiny'."
    assert server.keys == other.keys == [None, None, None], "no key is sent there"


def test_local_without_a_server_says_so(stage):
    s, _ = local_port(stage)
    done = s.run("models", "--local")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("hypercode: no model server answers on this machine (ports 1); local_ports names others.\n")
    assert json.loads(s.run("models", "--local", "--json").stdout)["models"] == []
    done = s.run("models", "--local", "--base-url", "http://127.0.0.1:1/v1")
    assert (done.returncode, done.stderr) == (
        2,
        "hypercode: --local: looks for a server itself; leave out --base-url\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_list_that_cannot_be_written_is_said(stage, server):
    command = f"{HYPERCODE} models > /dev/full"
    s = stage()
    done = subprocess.run(
        ["sh", "-c", command],
        env=s.environment(HYPERCODE_BASE_URL=server.base_url),
        cwd=s.workspace,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "hypercode: the list could not be written: No space left on device\n",
    )
