"""Arguments changed from another process: judged before they stand, applied by the next life, told to the model."""

import json
from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command


def test_edited_arguments_are_what_runs_and_bad_ones_leave_the_question_open(tmp_path: Path) -> None:
    script = [TC("c1", "write_file", {"file_path": "a.txt", "content": "model\n"}), TXT("done")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)

        def edit(arguments: str) -> tuple[int, str]:
            done = command("approvals", "edit", "c1", "--arguments", arguments, "--json")
            return done.returncode, done.stdout + done.stderr

        command.run_json("go", "--thread", "t1")
        unusable = edit('{"file_path": 7}')
        denied = edit(json.dumps({"file_path": str(tmp_path / "home" / "config.toml"), "content": ""}))
        no_object = edit("[1]")
        waiting = [call["call_id"] for call in command.json("approvals", "list")["approvals"]]
        code, accepted = edit('{"file_path": "b.txt", "content": "mine\\n"}')
        late = edit('{"file_path": "c.txt", "content": ""}')
        end, _ = command.run_json("--resume", "t1")

    assert [unusable[0], denied[0], no_object[0], waiting] == [1, 1, 2, ["c1"]]
    assert all("still waits" in told for _, told in (unusable, denied))
    given = json.loads(accepted)
    assert (code, {**given, "by": "", "at": ""}) == (
        0,
        {"call_id": "c1", "thread_id": "t1", "kind": "edit", "accepted": True, "by": "", "at": ""},
    )
    assert (late[0], json.loads(late[1])) == (1, {**given, "accepted": False})
    assert (end, sorted(path.name for path in command.workspace.iterdir())) == (0, ["b.txt"])
    assert (command.workspace / "b.txt").read_text() == "mine\n"
    assert "b.txt" in server.bodies[-1]["messages"][-1]["content"]
