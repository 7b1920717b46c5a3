"""The walk with its stat cache, the ignore rules, and what two scans say is different."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypercode.memory.ignore_rules import parse_ignore
from hypercode.memory.workspace_diff import compare
from hypercode.memory.workspace_scan import Limits, Scan, scan

LIMITS = Limits()


def look(ws, known=None, **options):
    kept = []
    options = {"keep": kept.append, "limits": LIMITS, "known": known or Scan()} | options
    return scan([ws], **options), kept


def names(found, ws):
    return sorted(os.path.relpath(path, ws) for path in found.files)


def make(ws, *paths):
    for path in paths:
        (ws / path).parent.mkdir(parents=True, exist_ok=True)
        (ws / path).write_text(path)


def settled(ws):
    """Once the files of a workspace are older than what may hide a write."""
    found, _ = look(ws)
    for _ in range(10_000):
        if not any(row[7] for row in found.files.values()):
            return found
        found, _ = look(ws, found)
    raise AssertionError("files stay suspicious for ever")


# -- the walk --------------------------------------------------------------------------


def test_unchanged_files_are_not_read_again(tmp_path):
    make(tmp_path, "a", "d/b", "d/e/c")
    found = settled(tmp_path)
    again, kept = look(tmp_path, found)
    assert (again.read, kept, again.files) == (0, [], found.files)
    (tmp_path / "d/b").write_text("x/y")  # the same size
    again, kept = look(tmp_path, found)
    assert (again.read, kept) == (1, [b"x/y"])


def test_a_write_that_hides_behind_old_times_is_seen(tmp_path):
    make(tmp_path, "a")
    found = settled(tmp_path)
    times = (tmp_path / "a").stat()
    (tmp_path / "a").write_text("b")
    os.utime(tmp_path / "a", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert look(tmp_path, found)[1] == [b"b"]


def test_two_writes_within_one_tick_of_the_clock_are_seen(tmp_path):
    for number in range(200):
        (tmp_path / "a").write_text(f"{number:04}")
        found, _ = look(tmp_path)
        (tmp_path / "a").write_text(f"{number:03}x")
        assert look(tmp_path, found)[1] == [f"{number:03}x".encode()]


def test_what_is_passed_over(tmp_path):
    make(tmp_path, "a", ".git/config", "sub/.git/HEAD", "node_modules/x/y", "__pycache__/z", "skip/me", ".hidden/h")
    make(tmp_path, ".hypercode-0123456789abcdef.tmp", "sub/b", "worktree/.git")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "folder-link").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    found, _ = look(tmp_path, skip=[tmp_path / "skip"])
    assert names(found, tmp_path) == [".hidden/h", "a", "sub/b"]
    assert sorted(os.path.relpath(p, tmp_path) for p in found.others) == ["fifo", "folder-link", "link"]


def test_nested_roots_are_walked_once(tmp_path):
    make(tmp_path, "a", "d/b")
    found = scan([tmp_path / "d", tmp_path], known=Scan(), keep=lambda data: None, limits=LIMITS)
    assert (names(found, tmp_path), found.read) == (["a", "d/b"], 2)


def test_deep_folders_end_somewhere(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 150)
    deep.mkdir(parents=True)
    (deep / "x").touch()
    found, _ = look(tmp_path)
    assert list(found.closed.values()) == ["more than 100 folders deep"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_said(tmp_path):
    make(tmp_path, "a", "d/b")
    (tmp_path / "a").chmod(0)
    (tmp_path / "d").chmod(0)
    found, _ = look(tmp_path)
    (tmp_path / "d").chmod(0o700)
    assert len(found.notes()) == 2


def test_a_root_that_is_gone_is_said(tmp_path):
    found, _ = look(tmp_path / "gone")
    assert found.notes() == [
        f"Undo does not cover what commands do to 1 folder ({tmp_path}/gone): there is no such file."
    ]


def test_what_there_was_no_room_for_is_taken_when_there_is(tmp_path):
    make(tmp_path, "aaaa", "bbbb")
    found, kept = look(tmp_path, limits=Limits(total_bytes=6))
    assert (len(kept), len(found.notes())) == (1, 1)
    sorted(tmp_path.iterdir(), key=lambda p: p.read_bytes() != kept[0])[0].unlink()
    _, kept = look(tmp_path, found, limits=Limits(total_bytes=6))
    assert len(kept) >= 1


# -- the difference --------------------------------------------------------------------


def difference(ws, act, limits=LIMITS):
    before, _ = look(ws, limits=limits)
    act()
    after, _ = look(ws, before, limits=limits, follow_rules=True)
    deltas, notes = compare(before, after)
    shown = [(os.path.relpath(d.path, ws), d.before and d.before.kind, d.after and d.after.kind) for d in deltas]
    return shown, notes


def test_every_kind_of_change(tmp_path):
    make(tmp_path, "changed", "gone", "was/file", "d/x")

    def act():
        (tmp_path / "changed").write_text("new")
        (tmp_path / "gone").unlink()
        make(tmp_path, "new/made")
        (tmp_path / "was/file").unlink()
        (tmp_path / "was").rmdir()
        (tmp_path / "was").symlink_to("d")
        os.mkfifo(tmp_path / "fifo")

    assert difference(tmp_path, act) == (
        [
            ("changed", "file", "file"),
            ("gone", "file", None),
            ("new", None, "folder"),
            ("new/made", None, "file"),
            ("was", "folder", "other"),
            ("was/file", "file", None),
        ],
        [],
    )


def test_rules_that_change_in_between_are_those_of_before(tmp_path):
    make(tmp_path, "keep", "x.log", "build/out", "sub/y.log")
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    shown, _ = difference(tmp_path, lambda: (tmp_path / ".gitignore").write_text("keep\n"))
    assert shown == [(".gitignore", "file", "file")]


def test_rules_that_changed_since_the_last_scan_hold_for_known_files(tmp_path):
    make(tmp_path, "a.log", "d/b.log", "c")
    found = settled(tmp_path)
    (tmp_path / ".gitignore").write_text("*.log\n")
    found, _ = look(tmp_path, found)
    assert names(found, tmp_path) == [".gitignore", "c"]
    (tmp_path / ".gitignore").unlink()
    found, _ = look(tmp_path, found)
    assert names(found, tmp_path) == ["a.log", "c", "d/b.log"]


def test_a_folder_that_grows_beyond_the_limit_stays_covered(tmp_path):
    make(tmp_path, *(f"sub/{n}" for n in range(5)))

    def act():
        make(tmp_path, *(f"sub/new{n}" for n in range(5)))
        (tmp_path / "sub/0").write_text("changed")

    shown, notes = difference(tmp_path, act, Limits(files=6))
    assert (("sub/0", "file", "file") in shown, len(shown), notes) == (True, 6, [])


def test_what_was_not_looked_at_before_is_not_taken_as_made(tmp_path):
    make(tmp_path, "few", *(f"many/{n}" for n in range(9)))
    shown, _ = difference(tmp_path, lambda: [(tmp_path / f"many/{n}").unlink() for n in range(6)], Limits(files=6))
    assert shown == []


def test_a_new_folder_brings_its_own_rules(tmp_path):
    def act():
        make(tmp_path, "venv/lib/x")
        (tmp_path / "venv/.gitignore").write_text("*\n")

    assert difference(tmp_path, act)[0] == [("venv", None, "folder")]


# -- ignore rules ----------------------------------------------------------------------


def ignored_by_git(ws, paths):
    """What git itself ignores of these files."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(ws.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    if not (ws / ".git").exists():
        subprocess.run(["git", "init", "-q", str(ws)], check=True, env=environment)
    asked = b"\0".join(os.fsencode(path) for path in paths)
    done = subprocess.run(
        ["git", "-C", str(ws), "check-ignore", "--no-index", "--stdin", "-z"],
        input=asked,
        capture_output=True,
        check=False,
        env=environment,
    )
    assert done.returncode in (0, 1), done.stderr
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}


def words(text):
    return text.split()


TREE = [
    *words("a b.c a.c abc a/b a/c/b a/b/c/d b/a foo/bar foo/x/bar foo/x/y/bar x/foo/bar build/x src/build/y !bang"),
    *words("#hash trail -dash [x] x.log x.LOG logs/x.log deep/logs/y ab\\c A/B a-b a+b 0 b0"),
    *("with blank", "end ", "ünï"),
]
PATTERNS = [
    *words("a /a a/ *.c !a.c a/b a/** **/b **/a/b a/**/d foo/*/bar foo/**/bar /foo foo/ *.log !x.log logs/ logs/*"),
    *words("!logs/x.log build /build build/ !build/ * !*/ !*.c /* !/a a? [ab] [!a] [^a] [a-c]*.c [[:upper:]]"),
    *words("[[:digit:]] [x [] \\[x] \\!bang \\#hash #hash !bang ** **/ /** a/*/ *b* ?/? x/**/bar ***/b a**b **a"),
    *words("[a-] []-a] [\\]] ab\\\\c ab\\c -dash / // !/ !! a//b ünï *ï ??? ????? [[:alpha:]]b a\\ b [!/]b a[/]b"),
    *words("*a*b *o*/*a* f*/**/b*r **/x/**/y/*a* **/**/b a/**/**/d [[:space:]]* [[:nope:]] [c-a] [ü]n* */**/*"),
    *("with blank", "end\\ ", "end ", "trail   ", "", "a\r", "*.c\r"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_pattern_means_what_it_means_to_git(tmp_path, pattern):
    agree(tmp_path / "ws", {".gitignore": pattern})


def agree(ws, rules):
    ws.mkdir(exist_ok=True)
    taken = [path for path in TREE if not any(other.startswith(path + "/") for other in TREE)]
    make(ws, *taken)
    for path, text in rules.items():
        (ws / path).parent.mkdir(parents=True, exist_ok=True)
        (ws / path).write_text(text)
    paths = [os.path.relpath(p, ws) for p in ws.rglob("*") if p.is_file() and ".git/" not in f"{p}/"]
    found, _ = look(ws)
    assert names(found, ws) == sorted(set(paths) - ignored_by_git(ws, paths)), rules


_texts = st.lists(st.sampled_from(PATTERNS), max_size=6).map("\n".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fixed_dictionaries({".gitignore": _texts, "foo/.gitignore": _texts, "a/b/.gitignore": _texts}))
def test_several_files_of_patterns_mean_what_they_mean_to_git(tmp_path, rules):
    agree(tmp_path / "ws", rules)


def test_the_repositorys_rules_above_and_its_private_ones_hold(tmp_path):
    make(tmp_path, "ws/x.log", "ws/y.tmp", "ws/build/z", "ws/a", "build/no")
    (tmp_path / ".gitignore").write_text("*.log\n/ws/build\n")
    (tmp_path / ".git/info").mkdir(parents=True)
    (tmp_path / ".git/info/exclude").write_text("*.tmp\n")
    found, _ = look(tmp_path / "ws")
    assert names(found, tmp_path / "ws") == ["a"]


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "huge"])
def test_an_ignore_file_that_is_none_ignores_nothing(tmp_path, kind):
    make(tmp_path, "a")
    path = tmp_path / ".gitignore"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        (tmp_path.parent / "rules").write_text("*\n")
        path.symlink_to("../rules")
    else:
        path.write_text("*\n" * 200_000)
    found, _ = look(tmp_path)
    assert "a" in names(found, tmp_path)


def test_a_hostile_pattern_takes_no_time():
    rules = parse_ignore("*a" * 50 + "*b\n" + "**/" * 60 + "x\n")
    assert rules is not None
    assert rules.verdict("a" * 200, "a" * 200, False) is None
    assert rules.verdict("y/" * 40 + "z", "z", False) is None
    rules = parse_ignore("**/a/" * 30 + "b\n" + "/*a*/" * 20 + "b")
    assert rules is not None
    assert rules.verdict("a/" * 90 + "c", "c", False) is None


def test_of_a_folder_of_secrets_only_programs_and_texts_are_kept(tmp_path):
    secret = ("secrets/db_password", "a/Secrets/x.json", ".env~", "b/id_rsa.bak", ".ssh/x.py")
    make(tmp_path, *secret, "secrets/load.py", "a/Secrets/README.md", "secrets.py", "b/main.py~")
    found, kept = look(tmp_path)
    assert sorted(kept) == [b"a/Secrets/README.md", b"b/main.py~", b"secrets.py", b"secrets/load.py"]
    assert {os.path.relpath(path, tmp_path) for path, row in found.files.items() if "secrets" in row[6]} == set(secret)
