"""What the file guard keeps secret, commands and searches keep secret as well: one list, three readers."""

from pathlib import Path

import pytest

from hypercode.safety.command import classify
from hypercode.safety.decision import Decision
from hypercode.safety.path_rules import (
    HIDDEN_GLOBS,
    HOME_SECRETS,
    KEY_FILES,
    SYSTEM_SECRETS,
    Places,
    judge,
    never_listed,
)

HOME, WORKSPACE = Path("/home/me"), Path("/home/me/work")
PLACES = Places((WORKSPACE,), HOME)


def spelled(row):
    """A path that the row means."""
    return "/".join(row).replace("@", " ").replace("*", "x")


def asked(path):
    return classify(f'cat "{path}"', workspace=WORKSPACE, home=HOME).decision


@pytest.mark.parametrize("row", HOME_SECRETS, ids=spelled)
def test_places_in_the_home_folder(row):
    path = HOME / spelled(row)
    assert judge("read", path, PLACES)[0] is Decision.DENY
    assert asked(path) is Decision.ALWAYS_ASK
    assert asked(path / "inside") is Decision.ALWAYS_ASK
    assert "/".join(("**", *row) if len(row) > 1 else row).replace("@", " ") in HIDDEN_GLOBS


@pytest.mark.parametrize("row", SYSTEM_SECRETS, ids=spelled)
def test_places_of_the_system(row):
    path = Path("/", spelled(row))
    assert judge("read", path, PLACES)[0] is Decision.DENY
    assert asked(path) is Decision.ALWAYS_ASK


@pytest.mark.parametrize("name", KEY_FILES)
def test_names_in_a_project(name):
    path = WORKSPACE / name.replace("*", "x")
    assert judge("read", path, PLACES)[0] is Decision.ASK
    assert asked(path).rank >= Decision.ASK.rank
    assert name in HIDDEN_GLOBS


@pytest.mark.parametrize(
    "name", [".env", "id_rsa", "server.pem", "credentials.json", "secrets.yml", "terraform.tfvars", ".npmrc"]
)
@pytest.mark.parametrize(
    "form",
    ["{}~", "{}.bak", "{}.old", "{}.orig", "{}.save", "#{}#", "{}.swp", ".{}.swo", "{}_backup", "{}-old", "{}.2024-01-31",
     "{}.bak.1", "{}.~1~", "{} copy", "Copy of {}", "{} (1)", "{}.BAK", "sub/{}.txt"],
)  # fmt: skip
def test_copies_of_secrets_under_other_names(name, form):
    path = WORKSPACE / form.format(name)
    assert judge("read", path, PLACES)[0] is Decision.ASK
    assert judge("write", path, PLACES)[0] is Decision.ASK
    assert never_listed(path, WORKSPACE)


@pytest.mark.parametrize(
    "name",
    [
        "secrets/db_password",
        "secrets/api.txt",
        "deploy/.secrets/a/b.json",
        ".secrets/x.sh",
        "Secrets/key",
        ".credentials/x",
    ],
)
def test_what_lies_in_a_folder_of_secrets(name):
    assert judge("read", WORKSPACE / name, PLACES)[0] is Decision.ASK
    assert never_listed(WORKSPACE / name, WORKSPACE)


@pytest.mark.parametrize(
    "name",
    [
        "secrets.py", "docs/secrets.md", "src/secrets/__init__.py", "src/secrets/manager.ts", "secrets/README.md",
        "modules/secrets/main.tf", "secrets/.gitignore", "packages/secrets/package.json", "secrets", "secretsmanager/x",
        "README.md.bak", "main.py~", "#notes.txt#", ".main.py.swp", ".env.example~", ".env-sample", ".env.example.bak",
        "id_rsa.pub.bak", "id_rsa_work.pub", "pkg/kubeconfig.go", "locales/de/auth.json", "src/auth.py", "release.tar.gz.asc",
        "KEYS.asc", ".circleci/config.yml", ".vercel/project.json", ".netlify/state.json", "tokens.json", "x.privatekey.md",
        "wgconf", "auth.json.ts", "htpasswd.c", "settings.json", "requirements.txt", "a-1.txt",
    ],
)  # fmt: skip
def test_harmless_neighbours_of_secrets(name):
    assert judge("read", WORKSPACE / name, PLACES)[0] is Decision.AUTO
    assert judge("edit", WORKSPACE / name, PLACES)[0] is Decision.AUTO
    assert not never_listed(WORKSPACE / name, WORKSPACE)


@pytest.mark.parametrize("name", [".env.example", "id_rsa.pub", "keys.py", "src/secret_names.txt", ".envoy"])
def test_names_that_only_look_like_it(name):
    assert judge("read", WORKSPACE / name, PLACES)[0] is Decision.AUTO
    assert asked(WORKSPACE / name) is Decision.AUTO


@pytest.mark.parametrize(
    ("command", "least"),
    [
        ("cat .?/x", Decision.ASK),
        ("cat .[.]/x", Decision.ASK),
        ("cat src/.?/.?/x", Decision.ASK),
        ("ls .?", Decision.ASK),
        ("rm -rf .?", Decision.ALWAYS_ASK),
        ("rm -rf .*", Decision.ALWAYS_ASK),
        ("rm -rf src/.?/.?", Decision.ALWAYS_ASK),
    ],
)
def test_a_pattern_that_some_shells_read_as_the_folder_above(command, least):
    got = classify(command, workspace=WORKSPACE, home=HOME).decision
    assert got.rank >= least.rank


@pytest.mark.parametrize("command", ["cat */x", "cat src/.?", "ls src/a.?", "cat .??"])
def test_a_pattern_that_stays_inside(command):
    assert classify(command, workspace=WORKSPACE, home=HOME).decision is Decision.AUTO


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("node_modules/.bin/eslint", Decision.ALWAYS_ASK),
        ("web/node_modules/.bin/eslint", Decision.ALWAYS_ASK),
        ("env/bin/activate", Decision.ALWAYS_ASK),
        (".venv-3.12/bin/python", Decision.ALWAYS_ASK),
        (".tox/py312/bin/python", Decision.ALWAYS_ASK),
        (".yarn/releases/yarn-4.cjs", Decision.ALWAYS_ASK),
        (".ycm_extra_conf.py", Decision.ALWAYS_ASK),
        (".autoenv", Decision.ALWAYS_ASK),
        (".autoenv.zsh", Decision.ALWAYS_ASK),
        (".vs/launch.vs.json", Decision.ALWAYS_ASK),
        (".run/x.run.xml", Decision.ALWAYS_ASK),
        (".git-hooks/pre-commit", Decision.ALWAYS_ASK),
        ("jupyter_server_config.py", Decision.ALWAYS_ASK),
        (".lefthook.yml", Decision.ASK),
        ("lefthook-local.toml", Decision.ASK),
        (".tool-versions", Decision.ASK),
        ("rust-toolchain", Decision.ASK),
        ("crate/rust-toolchain.toml", Decision.ASK),
        (".python-version", Decision.ASK),
        (".nvmrc", Decision.ASK),
        (".lintstagedrc.json", Decision.ASK),
        (".bundle/config", Decision.ASK),
        (".luarc.json", Decision.ASK),
        ("node_modules/x/index.js", Decision.AUTO),
        ("bin/activate", Decision.AUTO),
        ("src/env/index.ts", Decision.AUTO),
        ("docs/lefthook.md", Decision.AUTO),
        ("run/x.xml", Decision.AUTO),
        (".yarn/install-state.gz", Decision.AUTO),
        ("jupyter.py", Decision.AUTO),
        ("toolchain.toml", Decision.AUTO),
        ("package.json", Decision.AUTO),
    ],
)
def test_what_is_run_or_obeyed_later(name, decision):
    assert judge("write", WORKSPACE / name, PLACES)[0] is decision
    assert judge("edit", WORKSPACE / name, PLACES)[0] is decision
    assert judge("read", WORKSPACE / name, PLACES)[0] is Decision.AUTO


@pytest.mark.parametrize(
    "name",
    [".huggingface/token", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".fly/config.yml", ".config/heroku/x",
     ".vercel/auth.json", ".local/share/com.vercel.cli/auth.json", ".supabase/access-token", ".wrangler/config/default.toml",
     ".config/.wrangler/x", ".kaggle/kaggle.json", ".ngrok2/ngrok.yml", ".config/ngrok/ngrok.yml", ".config/stripe/config.toml",
     ".circleci/cli.yml", ".Xauthority", ".ICEauthority", ".netlify/config.json", ".config/Bitwarden CLI/data.json",
     "Library/Application Support/Signal/config.json"],
)  # fmt: skip
def test_tokens_in_the_home_folder(name):
    assert {judge(op, HOME / name, PLACES)[0] for op in ("read", "write", "grep", "ls")} == {Decision.DENY}


@pytest.mark.parametrize(
    "name", [".cache/huggingface/hub/x", ".circleci/config.yml", ".config/configstore/x.json", ".fly/bin/fly"]
)
def test_what_lies_beside_tokens_in_the_home_folder(name):
    assert judge("read", HOME / name, PLACES)[0] is Decision.ASK
