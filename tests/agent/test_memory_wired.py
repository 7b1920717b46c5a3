"""What memory brings into a session: skills by a tool, instructions as data."""

from hypercode.llm.fake import Call, script
from hypercode.messages import text_of
from hypercode.safety.trust import Trust


async def test_skills_and_instructions_reach_the_model_project_ones_after_trust(harness, tmp_path):
    conf = tmp_path / "hypercode"
    s = conf / "skills" / "api"
    s.mkdir(parents=True)
    (s / "SKILL.md").write_text("---\nname: api\ndescription: Call it.\n---\nRead extra.md")
    (s / "extra.md").write_text("the extra")
    (conf / "AGENTS.md").write_text("Be kind.\n")
    w = tmp_path / "work"
    (w / "sub").mkdir(parents=True)
    (w / "AGENTS.md").write_text("Project says.\n")
    (w / "sub" / "AGENTS.md").write_text("Nested says.\n")
    (w / "sub" / "x.txt").write_text("x")
    h = harness(
        [
            script(Call("skill", {"name": "api"})),
            script(Call("read", {"path": str(s / "extra.md")}), Call("read", {"path": "sub/x.txt"})),
            "done",
        ]
    )
    r = await h.run()
    assert r.outcome == "complete"
    out = [m["content"] for m in h.agent.messages if m["role"] == "tool"]
    assert "Read extra.md" in out[0]
    assert "the extra" in out[1]
    first = text_of(h.model.requests[0].messages[0])
    assert "Be kind" in first
    assert "- api: Call it." in first
    assert "Project says" not in first
    assert "Nested says" not in text_of(h.model.requests[2].messages[0])
    Trust(conf / "state").grant(w)
    h2 = harness([script(Call("read", {"path": "sub/x.txt"})), "done"])
    await h2.run()
    assert "Project says" in text_of(h2.model.requests[0].messages[0])
    assert "Nested says" in text_of(h2.model.requests[1].messages[0])
