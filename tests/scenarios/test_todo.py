from pathlib import Path
from typing import Any

from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.scenarios.command import Command

_PLAN = [{"content": "look", "status": "in_progress"}, {"content": "tell", "status": "pending"}]


def _told(server: FakeOpenAI, number: int) -> list[Any]:
    return [message["content"] for message in server.bodies[number]["messages"] if message["role"] == "tool"]


def test_a_plan_is_kept_with_the_thread_and_read_by_a_later_process(tmp_path: Path) -> None:
    script = [TC("c1", "todo_write", {"items": _PLAN}), TXT("planned"), TC("c2", "todo_read", {}), TXT("told")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        first = command.run_json("plan it", "--thread", "t1", "--mode", "plan")
        second = command.run_json("what is left?", "--thread", "t1")
        values = command.json("inspect", "t1")["values"]
        shown = command("inspect", "t1").stdout

    assert (first[0], second[0], values["todo"], server.faults) == (0, 0, _PLAN, [])
    assert _told(server, 3) == ["[>] look\n[ ] tell"] * 2
    assert "todo\n  [>] look\n  [ ] tell\n" in shown


def test_of_one_message_the_plan_read_after_a_write_is_the_new_one(tmp_path: Path) -> None:
    script = [TCS(("c1", "todo_write", {"items": _PLAN}), ("c2", "todo_read", {})), TXT("done")]
    with FakeOpenAI(script, strict=True) as server:
        code, _ = Command(tmp_path, server.base_url).run_json("go", "--thread", "t1")

    assert (code, _told(server, 1)) == (0, ["[>] look\n[ ] tell"] * 2)
