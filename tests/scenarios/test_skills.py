from pathlib import Path

from tests.cases.bench import Bench
from tests.fakes.openai_server import TC, TXT, FakeOpenAI


def test_a_skill_of_a_trusted_project_is_told_by_name_and_read_when_it_is_called_for(tmp_path: Path) -> None:
    script = [TC("c1", "skill", '{"name": "release"}'), TC("c2", "skill", '{"name": "release", "file": "list.md"}')]
    with FakeOpenAI([TXT("nothing yet"), *script, TXT("ok")], strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.configure("")
        place = bench.workspace / ".agents/skills/release"
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text("---\ndescription: How to release.\n---\nFollow list.md.\n")
        (place / "list.md").write_text("1. Tag.\n")

        untrusted = bench.ask("go", "--mode", "plan")
        trusted = bench.ask("go", "--mode", "plan", "--trust")

    offered = [
        [tool["function"]["description"] for tool in body["tools"] if tool["function"]["name"] == "skill"]
        for body in server.bodies[:2]
    ]
    assert (untrusted.ending, trusted.ending) == ((0, "nothing yet"), (0, "ok"))
    assert ("SKILL.md of " in untrusted.err, "config trust" in untrusted.err) == (True, True)
    assert (offered[0], offered[1][0].split("\n")[-1]) == ([], "- release: How to release.")
    assert bench.results(4)[0].startswith("Follow list.md.\n\n[This skill's folder is ")
    assert bench.results(4)[1:] == ["1. Tag.\n"]
