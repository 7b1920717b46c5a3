"""Keeping a key in the configuration file."""

import os
import stat
import tomllib

import pytest

from hypercode.config import example
from hypercode.errors import ConfigError
from hypercode.key_file import keep_key

KEY = "sk-or-v1-0123456789abcdef"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f'api_key = "{KEY}"\n'),
        ("", f'api_key = "{KEY}"\n'),
        ('model = "x/y"\n', f'api_key = "{KEY}"\nmodel = "x/y"\n'),
        ('model = "x"\napi_key = "old"  # mine\nvi = true\n', f'model = "x"\napi_key = "{KEY}"\nvi = true\n'),
        ('# a note\n# api_key = ""\nvi = true', f'# a note\napi_key = "{KEY}"\nvi = true'),
        ("[headers]\na = 1\n", f'api_key = "{KEY}"\n[headers]\na = 1\n'),
        ('[profiles.p]\napi_key = "other"\n', f'api_key = "{KEY}"\n[profiles.p]\napi_key = "other"\n'),
    ],
)
def test_everything_else_stays_as_it_was(tmp_path, before, after):
    file = tmp_path / "made" / "config.toml"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
        file.chmod(0o600)
    old = os.umask(0)
    try:
        keep_key(file, KEY)
    finally:
        os.umask(old)
    assert file.read_text() == after
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(file.parent)) == ["config.toml"]


def test_the_example_keeps_its_comments(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(example())
    keep_key(file, KEY)
    assert tomllib.loads(file.read_text()) == {"api_key": KEY}
    assert len(file.read_text().splitlines()) == len(example().splitlines())


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("model = ", "it is not valid TOML"),
        ('allow = ["""\napi_key = 1\n"""]\n', "it is laid out so that a line cannot be changed safely"),
        ('api_key = """\nold\n"""\n', "it is laid out so that a line cannot be changed safely"),
        ("\ufeffmodel = 1", "it is not valid TOML"),
        (b"\xff\xfe", "the key was not kept"),
    ],
)
def test_what_cannot_be_changed_safely_is_left(tmp_path, before, words):
    file = tmp_path / "config.toml"
    data = before if isinstance(before, bytes) else before.encode()
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=words) as raised:
        keep_key(file, KEY)
    assert file.read_bytes() == data
    assert KEY not in str(raised.value)


def test_a_file_that_others_can_write_or_that_is_none(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written to by others"):
        keep_key(file, KEY)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a regular file"):
        keep_key(file, KEY)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.toml").write_text("vi = true\n")
    (tmp_path / "real.toml").chmod(0o600)
    (tmp_path / "config.toml").symlink_to("real.toml")
    keep_key(tmp_path / "config.toml", KEY)
    assert (tmp_path / "config.toml").is_symlink()
    assert tomllib.loads((tmp_path / "real.toml").read_text()) == {"api_key": KEY, "vi": True}
