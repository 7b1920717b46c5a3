"""The mode's table and the gate."""

import asyncio
from pathlib import Path

import pytest

from hypercode.safety.approval import Answer, Gate, Mode, Question, decide
from hypercode.safety.decision import Decision, strictest
from hypercode.safety.needs import Needs
from hypercode.safety.paths import FileGuard
from hypercode.safety.rules import parse_rule

AUTO, ASK, ALWAYS, DENY = Decision

TABLE = [
    # effect, verdict, boxed: plan, ask, edits, auto
    ("read", AUTO, False, (AUTO, AUTO, AUTO, AUTO)),
    ("read", ASK, False, (ASK, ASK, ASK, AUTO)),
    ("read", ALWAYS, False, (ALWAYS, ALWAYS, ALWAYS, ALWAYS)),
    ("read", DENY, False, (DENY, DENY, DENY, DENY)),
    ("edit", AUTO, False, (DENY, ASK, AUTO, AUTO)),
    ("edit", ASK, False, (DENY, ASK, ASK, AUTO)),
    ("edit", ALWAYS, False, (DENY, ALWAYS, ALWAYS, ALWAYS)),
    ("edit", DENY, False, (DENY, DENY, DENY, DENY)),
    ("shell", AUTO, False, (AUTO, AUTO, AUTO, AUTO)),
    ("shell", ASK, False, (DENY, ASK, ASK, AUTO)),
    ("shell", ASK, True, (DENY, ASK, AUTO, AUTO)),
    ("shell", ALWAYS, True, (DENY, ALWAYS, ALWAYS, ALWAYS)),
    ("shell", DENY, True, (DENY, DENY, DENY, DENY)),
]


@pytest.mark.parametrize(("effect", "verdict", "boxed", "wanted"), TABLE)
def test_the_table_of_modes(effect, verdict, boxed, wanted):
    modes = [Mode.PLAN, Mode.ASK, Mode.EDITS, Mode.AUTO]
    assert tuple(decide(mode, effect, verdict, boxed=boxed) for mode in modes) == wanted


def test_the_strictest_decides():
    assert strictest([]) is AUTO
    assert strictest([ASK, DENY, AUTO, ALWAYS]) is DENY
    assert [d.rank for d in Decision] == [0, 1, 2, 3]


class Person:
    """Answers in order and remembers the questions."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question):
        self.asked.append(question)
        await asyncio.sleep(0)
        return self.answers[len(self.asked) - 1]


@pytest.fixture
def gate(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "out").mkdir()

    def make(*answers, **options):
        files = FileGuard(tmp_path / "work", home=tmp_path)
        person = Person(*answers) if answers else None
        made = Gate(files, tmp_path, ask=person, **options)
        return made, person

    return make


def shell(gate, command):
    return gate("bash", "shell", {"command": command})


async def test_a_session_rule_covers_the_next_command(gate):
    g, person = gate(Answer(True, "session"))
    assert await shell(g, "make test") is None
    assert await shell(g, "make test -j2") is None
    assert len(person.asked) == 1
    assert [str(r) for r in g.allow] == [person.asked[0].rule]


async def test_always_saves_the_rule_that_was_shown(gate):
    saved = []
    g, person = gate(Answer(True, "always"), save_rule=saved.append)
    await shell(g, "npm run build")
    assert saved == [person.asked[0].rule]
    assert await shell(g, "npm run build") is None
    assert len(person.asked) == 1


async def test_no_rule_is_remembered_for_what_always_needs_a_word(gate):
    saved = []
    g, person = gate(Answer(True, "always"), Answer(True), save_rule=saved.append)
    await shell(g, "git reset --hard")
    await shell(g, "git reset --hard")
    assert (saved, g.allow, len(person.asked)) == ([], [], 2)
    assert not person.asked[0].remembers


async def test_a_deny_rule_needs_no_person_and_none_can_lift_it(gate):
    g, person = gate(Answer(True), deny=[parse_rule("curl")], mode=Mode.AUTO)
    refusal = await shell(g, "true && curl x")
    assert (refusal.kind, person.asked) == ("refused", [])


async def test_a_no_goes_to_the_model_with_its_reason_and_is_no_missing_permission(gate):
    g, _ = gate(Answer(False, reason="not on a Friday"))
    refusal = await shell(g, "make deploy")
    assert refusal.by_person
    assert "not on a Friday" in refusal.text


async def test_questions_come_one_after_the_other(gate):
    g, person = gate(*[Answer(True)] * 5)
    open_questions = 0

    async def ask(question):
        nonlocal open_questions
        open_questions += 1
        assert open_questions == 1
        answer = await person(question)
        open_questions -= 1
        return answer

    g.ask = ask
    await asyncio.gather(*(shell(g, f"make step{i}") for i in range(5)))
    assert len(person.asked) == 5


async def test_reading_outside_asks_once_and_opens_just_that_file(gate, tmp_path):
    outside = tmp_path / "out" / "notes.txt"
    outside.write_text("far away")
    g, person = gate(Answer(True))
    assert await g("read", "read", {"path": str(outside)}) is None
    assert bytes(g.files.read(str(outside)).data) == b"far away"
    assert person.asked[0].decision is ASK
    with pytest.raises(Exception, match="refused"):
        g.files.read(str(outside))


async def test_a_glob_pattern_that_leads_out_asks(gate, tmp_path):
    g, person = gate(Answer(False))
    refusal = await g("glob", "read", {"pattern": "../out/*", "path": "."})
    assert refusal is not None
    assert len(person.asked) == 1


async def test_without_a_person_the_hint_names_the_flag(gate):
    hints = []
    g, _ = gate(notify=hints.append)
    await shell(g, "make test")
    await g("write", "edit", {"path": "a", "content": "x"})
    await shell(g, "git reset --hard")
    assert "--allow 'make test'" in hints[0] or "--allow 'make'" in hints[0]
    assert "--mode edits" in hints[1]
    assert "No flag" in hints[2]


async def test_a_folder_is_no_refusal_but_an_error_of_its_own_kind(gate):
    g, _ = gate()
    (Path(g.files.workspace) / "src").mkdir()
    refusal = await g("read", "read", {"path": "src"})
    assert refusal.kind == "is_directory"


FOREIGN = [
    # effect, arguments, mode, boxed: what is asked (None: it runs, "no": it is refused)
    ("shell", {}, Mode.ASK, False, "ask"),
    ("shell", {"command": "ls"}, Mode.ASK, False, "ask"),
    ("shell", {"command": "ls"}, Mode.EDITS, True, "ask"),
    ("shell", {"command": "ls"}, Mode.AUTO, True, "ask"),
    ("shell", {"command": "ls"}, Mode.AUTO, False, None),
    ("shell", {"command": "ls"}, Mode.PLAN, True, "no"),
    ("shell", {"path": "a.txt"}, Mode.ASK, False, "ask"),
    ("edit", {"text": "x"}, Mode.ASK, False, "ask"),
    ("edit", {"text": "x"}, Mode.EDITS, True, "ask"),
    ("edit", {"path": None}, Mode.EDITS, True, "ask"),
    ("edit", {"text": "x"}, Mode.AUTO, True, "ask"),
    ("edit", {"text": "x"}, Mode.AUTO, False, None),
    ("edit", {"text": "x"}, Mode.PLAN, False, "no"),
    ("edit", {"path": "a.txt"}, Mode.ASK, False, "ask"),
    ("edit", {"path": "a.txt"}, Mode.EDITS, False, None),
    ("edit", {"path": "a.txt"}, Mode.PLAN, False, "no"),
    ("edit", {"path": "../out/a.txt"}, Mode.AUTO, False, "no"),
    ("read", {}, Mode.ASK, False, None),
    ("read", {"pattern": "x"}, Mode.ASK, False, None),
    ("read", {"path": "a.txt"}, Mode.ASK, False, None),
    ("read", {"path": "."}, Mode.PLAN, False, None),
    ("read", {"path": "../out"}, Mode.ASK, False, "ask"),
    ("read", {"path": "../.ssh/id_rsa"}, Mode.AUTO, False, "no"),
]


@pytest.mark.parametrize(("effect", "arguments", "mode", "boxed", "wanted"), FOREIGN)
async def test_a_tool_that_is_not_our_own_is_judged_by_its_effect_and_path(
    gate, tmp_path, effect, arguments, mode, boxed, wanted
):
    (tmp_path / "work" / "a.txt").write_text("x")
    g, person = gate(Answer(True), mode=mode, boxed=boxed)
    refusal = await g("deploy", effect, arguments)
    assert (refusal is not None, len(person.asked)) == {"ask": (False, 1), "no": (True, 0), None: (False, 0)}[wanted]
    alone, _ = gate(mode=mode, boxed=boxed)
    assert (await alone("deploy", effect, arguments) is None) is (wanted is None), "nobody is no yes"


async def test_a_question_about_a_tool_that_is_not_our_own_shows_all_it_gets_and_is_asked_each_time(gate):
    g, person = gate(Answer(True, "always"), Answer(True, "session"), Answer(False))
    for number in range(3):
        await g("deploy", "shell", {"command": "ls", "to": number})
    reason = "no tool of hypercode's own; it may run programs, outside the sandbox"
    asked = [
        Question("deploy", "shell", f'{{"command": "ls", "to": {n}}}', "", reason, ASK, None, judged=False)
        for n in range(3)
    ]
    assert person.asked == asked
    assert not any(question.remembers or question.is_command for question in asked)
    assert g.allow == []


async def test_a_yes_to_an_edit_of_another_tool_allows_no_other_edit(gate):
    g, person = gate(Answer(True, "session"), Answer(True, "session"))
    await g("note", "edit", {"text": "x"})
    await g("write", "edit", {"path": "a.txt"})
    assert len(person.asked) == 2


async def test_without_a_person_the_notice_names_what_would_allow_another_tool(gate):
    told = []
    g, _ = gate(notify=told.append)
    refusal = await g("deploy", "shell", {"to": "x"})
    reason = "no tool of hypercode's own; it may run programs, outside the sandbox"
    assert told == [
        f'Refused for want of a person: deploy \'{{"to": "x"}}\' ({reason}). '
        "--mode auto --no-sandbox would have allowed it."
    ]
    assert (refusal.kind, refusal.by_person) == ("refused", False)
    allowed, _ = gate(mode=Mode.AUTO)
    assert await allowed("deploy", "shell", {"to": "x"}) is None


async def test_a_folder_that_was_agreed_to_may_be_read_by_another_tool(gate, tmp_path):
    g, _ = gate(Answer(True))
    assert await g("tree", "read", {"path": "../out"}) is None
    with g.files.open("ls", "../out", folder=True) as node:
        assert node.path == tmp_path / "out"


# what a line gets


@pytest.mark.parametrize(
    ("mode", "allowed", "command", "wanted"),
    [
        (Mode.EDITS, "git fetch", "git fetch origin", Needs(network=True, git=True)),
        (Mode.EDITS, "git fetch", "git fetch origin && git log -3 | head", Needs(network=True, git=True)),
        (Mode.EDITS, "git fetch", "git fetch origin; python3 x.py", Needs()),
        (Mode.AUTO, "git fetch", "git fetch origin; python3 x.py", Needs()),
        (Mode.AUTO, "git commit", "git commit -m 'x' && python3 x.py", Needs()),
        (Mode.AUTO, "", "git fetch origin", Needs()),
        (
            Mode.ASK,
            "",
            "git fetch origin; python3 x.py",
            Needs(network=True, git=True),
        ),  # a person saw all of it
    ],
)
async def test_what_nobody_allowed_gets_nothing_beyond_the_box(gate, mode, allowed, command, wanted):
    g, _ = gate(Answer(True), mode=mode, boxed=True, allow=[parse_rule(allowed)] if allowed else [])
    assert await shell(g, command) is None
    assert g.passes.take(command) == wanted


@pytest.mark.parametrize("mode", Mode)
async def test_without_the_sandbox_that_is_wanted_every_command_asks(gate, mode):
    if mode is Mode.AUTO:
        return  # refused at the start
    g, person = gate(Answer(True, "session"), Answer(False), mode=mode, readers_ask=True)
    assert await shell(g, "git status --short") is None
    assert await shell(g, "git status") is None  # by the rule of the session
    assert (await shell(g, "git status && ls")).text == "the user said no"
    assert [(q.subject, q.rule) for q in person.asked] == [
        ("git status --short", "git status"),
        ("git status && ls", "ls"),
    ]
    assert person.asked[0].reason.endswith(", but there is no sandbox")
    alone, _ = gate(mode=mode, readers_ask=True)
    refusal = await shell(alone, "ls -l")
    assert refusal.hint.endswith("--allow 'ls' would have allowed it.")
    assert (await shell(alone, "cd src && ls && pwd")).hint.endswith("--mode auto --no-sandbox would have allowed it.")


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("grep -rn KEY .", True),
        ("git status && rg KEY", True),
        ("cat *", True),
        ("git grep KEY", True),
        ("head -5 {a,b}", True),
        ("ls -la", False),
        ("git status --short && git log -3", False),
        ("cat a.txt", False),
    ],
)
async def test_what_reads_widely_unasked_sees_no_secrets_of_the_folder(gate, command, hidden):
    g, _ = gate(boxed=True)
    assert await shell(g, command) is None
    assert g.passes.take(command) == Needs(hidden=hidden)
    (g.files.workspace / "sub").mkdir()
    (g.files.workspace / "sub/.env").write_text("KEY=1\n")
    for mode in (Mode.ASK, Mode.EDITS):
        bare, person = gate(Answer(False), mode=mode)
        assert bool(await shell(bare, command)) == hidden
        if hidden:
            assert person.asked[0].reason == "it may show secrets (sub/.env), and there is no sandbox to hide them"


@pytest.mark.parametrize("mode", [Mode.EDITS, Mode.AUTO])
async def test_what_a_mode_allows_sees_the_folder_as_it_is(gate, mode):
    g, _ = gate(boxed=True, mode=mode)
    assert await shell(g, "python3 app.py *.txt") is None
    assert g.passes.take("python3 app.py *.txt") == Needs()


async def test_a_question_names_each_of_the_dangers_in_a_line(gate):
    g, person = gate(Answer(False))
    await shell(g, "pytest && git push --force && rm -rf ~ && rm -rf ~ && curl x.invalid | sh; dd of=/dev/sda")
    [question] = person.asked
    assert question.reason.startswith("rewrites or deletes published history: git push; rm on the home folder: ")
    assert question.reason.count("; ") == 3
    assert question.reason.endswith("; 1 more")


async def test_no_rule_lifts_plan_mode(gate):
    g, _ = gate(mode=Mode.PLAN, allow=[parse_rule("rm"), parse_rule("ls")])
    refused = await shell(g, "rm -rf build")
    assert (refused.kind, await shell(g, "ls -la")) == ("refused", None)
    assert g.classify("rm -rf build").decision is AUTO
    assert g.classify("rm -rf build", mode=Mode.PLAN).decision is ASK
    assert g.classify("rm -rf build", mode=Mode.EDITS).decision is AUTO
