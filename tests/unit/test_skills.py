"""Skills: the public format, what is made of odd ones, and the tool that reads them."""

import json

import pytest

from hypercode.errors import ToolError
from hypercode.memory.front_matter import FrontMatterError, split
from hypercode.memory.skills import Skills, load
from hypercode.safety.paths import FileGuard
from hypercode.safety.trust import Trust
from hypercode.tools.base import Toolbox, ToolContext
from hypercode.tools.skill import skill_tool


def put(folder, name, text):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "SKILL.md").write_text(text)
    return folder / name


def skill(name, description="Does things.", body="The steps."):
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


# -- the head --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("name: a\ndescription: b", {"name": "a", "description": "b"}),
        ('d: "quoted: \\"x\\" \\u00e9\\n"', {"d": 'quoted: "x" é\n'}),
        ("d: 'it''s: # here'  # a comment", {"d": "it's: # here"}),
        ("d: Use when: asked. See http://x/#y  # note", {"d": "Use when: asked. See http://x/#y"}),
        ("d: one\n  two\n\n  three\nn: x", {"d": "one two three", "n": "x"}),
        ("d: >\n  one\n  two\n\n  three\nn: x", {"d": "one two\nthree", "n": "x"}),
        ("d: >-\n    one\n    two", {"d": "one two"}),
        ("d: |\n  one\n    two\nn: x", {"d": "one\n  two", "n": "x"}),
        ('metadata:\n  author: me\n  version: "1.0"\nn: x', {"metadata": {"author": "me", "version": "1.0"}, "n": "x"}),
        ("allowed-tools:\n  - Bash(git:*)\n  - Read", {"allowed-tools": ["Bash(git:*)", "Read"]}),
        ("allowed-tools:\n- Read\nn: x", {"allowed-tools": ["Read"], "n": "x"}),
        ("t: [a, 'b, c', d]", {"t": ["a", "b, c", "d"]}),
        ("# a comment\n\nn: x", {"n": "x"}),
        ("n:", {"n": ""}),
        ("n: true", {"n": "true"}),
    ],
)
def test_the_head(head, expected):
    assert split(f"---\n{head}\n---\nBody\n") == (expected, "Body")
    assert split(f"---\n{head}\n---".replace("\n", "\r\n") + "\nBody\n") == (expected, "Body")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nname: a\n", "no end"),
        ("---\nname a\n---\n", "line 2: expected 'key: value'"),
        ('---\nn: "open\n---\n', "line 2: the quote has no end"),
        ("---\nn: 'open\n---\n", "line 2: the quote has no end"),
        ("---\nn: &anchor x\n---\n", "line 2: a value that begins with &"),
        ("---\nn: *alias\n---\n", "line 2: a value that begins with *"),
        ("---\nn: !!python/object x\n---\n", "line 2: a value that begins with !"),
        ("---\nn: {a: b}\n---\n", "line 2: a value that begins with {"),
        ("---\nn: a\nn: b\n---\n", "line 3: n is there twice"),
        ("---\nm:\n  a: b\n  c\n---\n", "line 4: expected"),
        ("---\n" + "# x\n" * 500 + "---\n", "more than 400 lines"),
    ],
)
def test_a_head_that_cannot_be_understood(text, words):
    with pytest.raises(FrontMatterError) as raised:
        split(text)
    assert words in str(raised.value)


def test_a_text_without_a_head():
    assert split("# Title\n---\nx: y\n---\n") == ({}, "# Title\n---\nx: y\n---\n")


# -- the folders -----------------------------------------------------------------------


def test_names_and_descriptions_are_all_that_is_in_the_context(tmp_path):
    put(tmp_path, "pdf-forms", skill("pdf-forms", "Fill in PDF forms.", "SECRET BODY"))
    put(tmp_path, "api", skill("api", ">\n  Call the API.\n  Use when asked."))
    (tmp_path / "notes.txt").write_text("no skill")
    (tmp_path / "empty").mkdir()
    skills = load([tmp_path])
    assert skills.notices == ()
    assert skills.text.endswith("\n- api: Call the API. Use when asked.\n- pdf-forms: Fill in PDF forms.\n")
    assert "SECRET BODY" not in skills.text
    assert "never permission" in skills.text
    assert load([tmp_path / "absent"]) == Skills({})
    assert Skills({}).text == ""


def test_of_two_with_one_name_the_persons_own_counts(tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    put(project / ".hypercode" / "skills", "api", skill("api", "The project's."))
    put(project / ".hypercode" / "skills", "other", skill("other", "Another."))
    put(tmp_path / "mine", "api", skill("api", "Mine."))
    trust = Trust(tmp_path / "state")
    assert list(load([tmp_path / "mine"], trust.accepted(project), trusted=False).found) == ["api"]
    trust.grant(project)
    items = trust.accepted(project)
    assert list(load([tmp_path / "mine"], items, trusted=False).found) == ["api"], "without trust nothing is taken"
    skills = load([tmp_path / "mine"], items, trusted=True)
    assert {n: (s.description, s.source) for n, s in skills.found.items()} == {
        "api": ("Mine.", "user"),
        "other": ("Another.", "project"),
    }
    assert "there is a skill api" in skills.notices[0]


def test_a_projects_body_is_what_was_trusted(tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    folder = put(project / ".hypercode" / "skills", "api", skill("api", body="Trusted."))
    trust = Trust(tmp_path / "state")
    trust.grant(project)
    skills = load([], trust.accepted(project), trusted=True)
    (folder / "SKILL.md").write_text(skill("api", body="Swapped."))
    assert skills.read("api").endswith("\n\nTrusted.")


@pytest.mark.parametrize(
    ("folder", "text", "known", "words"),
    [
        ("api", skill("other"), "other", "its folder's api"),
        ("api", skill("Bad Name"), "api", "known as api"),
        ("api", skill("a--b"), "api", "known as api"),
        ("api", "---\ndescription: x\n---\nBody", "api", "has no name"),
        ("api", skill("api", "w" * 1500), "api", "longer than 1024"),
        ("api", skill("api", "a\u202eb"), "api", "U+202E"),
        ("Bad", skill("Bad"), None, "left out"),
        ("api", "---\nname: api\n---\nBody", None, "needs a description"),
        ("api", "---\nname: api\ndescription:\n---\nBody", None, "needs a description"),
        ("api", "Just text", None, "needs a description"),
        ("api", "---\nname: api\n", None, "no end"),
        ("api", "\0binary", None, "binary"),
        ("n" * 65, skill("n" * 65), None, "left out"),
    ],
)
def test_odd_skills_are_said(tmp_path, folder, text, known, words):
    put(tmp_path, folder, text)
    skills = load([tmp_path])
    assert list(skills.found) == ([known] if known else [])
    assert words in " ".join(skills.notices)
    assert "\u202e" not in skills.text
    assert all(len(s.description) <= 1024 for s in skills.found.values())


def test_too_many_folders_are_said(tmp_path):
    for number in range(201):
        (tmp_path / f"s{number}").mkdir()
    skills = load([tmp_path])
    assert skills.found == {}
    assert "more than 200" in skills.notices[0]


# -- reading ---------------------------------------------------------------------------


def test_reading_names_the_folder_and_what_else_is_there(tmp_path):
    folder = put(tmp_path, "api", skill("api", body="See references/x.md."))
    (folder / "references").mkdir()
    (folder / "references" / "x.md").write_text("x")
    (folder / "run.py").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    skills = load([tmp_path])
    assert skills.read("API ") == (
        f"Skill api, in the folder {folder}. Paths in it are relative to that folder.\n"
        "Further files there: run.py, references/x.md\n\nSee references/x.md."
    )
    assert skills.invocation("api", " fix it ").endswith("\n\nWhat I want done with it: fix it")
    assert skills.invocation("api") == f"Use this skill.\n\n{skills.read('api')}"
    with pytest.raises(ToolError, match=r"not_found: There is no skill 'x'\. The skills are: api\."):
        skills.read("x")


async def test_the_tool_is_offered_only_where_there_are_skills(tmp_path):
    assert "skill" not in Toolbox.discover().names
    assert skill_tool(Skills({})) is None
    put(tmp_path, "api", skill("api", body="The steps."))
    tool = skill_tool(load([tmp_path]))
    assert (tool.name, tool.effect) == ("skill", "read")
    schema = tool.schema["function"]
    assert schema["parameters"] == {
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "type": "object",
    }
    assert "The steps" not in json.dumps(schema)
    context = ToolContext(files=FileGuard(tmp_path, home=tmp_path), spill=tmp_path / "spill")
    assert (await tool.call(context, tool.validate({"name": "api"}))).endswith("\n\nThe steps.")
    with pytest.raises(ToolError, match="not_found"):
        await tool.call(context, tool.validate({"name": "nothing"}))
