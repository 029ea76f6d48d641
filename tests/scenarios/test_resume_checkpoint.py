"""The real command goes on from an older checkpoint: what the model is sent, what is asked, what is shown."""

from pathlib import Path
from typing import Any

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command


def _said(server: FakeOpenAI) -> list[Any]:
    return [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]


def _shown(command: Command, *options: str) -> list[Any]:
    entries = command.json("threads", "show", "t1", *options)["transcript"]
    return [entry["body"]["content"] for entry in entries if entry["role"] == "user"]


def test_a_thread_resumed_from_an_older_checkpoint_goes_on_as_a_branch_that_the_next_run_keeps(
    tmp_path: Path,
) -> None:
    with FakeOpenAI([TXT(f"answer {number}") for number in range(6)], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        _, first = command.run_json("t1", "--thread", "t1")
        command.run_json("t2", "--thread", "t1")
        _, old = command.run_json("t3", "--thread", "t1")
        branched, _ = command.run_json("t2b", "--resume", first["checkpoint_id"])
        went_on, _ = command.run_json("t3b", "--resume", "t1")
        told, on_the_branch = _said(server), _shown(command)
        left = command("inspect", old["checkpoint_id"]).returncode
        back, again = command.run_json("--resume", old["checkpoint_id"])

    assert (branched, went_on, left, back, server.faults) == (0, 0, 0, 0, [])
    assert told == on_the_branch == ["t1", "t2b", "t3b"]
    assert (again["answer"], _shown(command)) == ("answer 2", ["t1", "t2", "t3"])
    assert _shown(command, "--all-branches") == ["t1", "t2", "t3", "t2b", "t3b"]


def test_an_approval_that_was_not_used_is_asked_for_again_and_one_that_was_never_runs_twice(tmp_path: Path) -> None:
    script = [TC("c1", "bash", {"command": "echo x >> log"}), TXT("done"), TXT("done again")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        _, asking = command.run_json("go", "--thread", "t1")
        command("approvals", "approve", "c1")
        _, before = command.run_json("--resume", asking["checkpoint_id"], "--recover", "ask")
        code, after = command.run_json("--resume", asking["checkpoint_id"])

    assert (before["status"], after["status"], code) == ("done", "done", 0)
    assert (command.workspace / "log").read_text() == "x\n"
    assert server.bodies[-1]["messages"][-1]["tool_call_id"] == "c1"


def test_an_approval_given_on_the_branch_that_was_left_is_asked_for_again(tmp_path: Path) -> None:
    script = [TXT("hello"), TC("c1", "bash", {"command": "echo x >> log"}), TXT("other")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        _, first = command.run_json("hi", "--thread", "t1")
        _, asking = command.run_json("go", "--thread", "t1")
        command("approvals", "approve", "c1")
        command.run_json("something else", "--resume", first["checkpoint_id"])
        left = command.json("approvals", "list")["approvals"]
        refused = command("approvals", "approve", "c1")
        code, again = command.run_json("--resume", asking["checkpoint_id"])

    assert (left, code, again["status"]) == ([], 3, "awaiting_approval")
    assert [call["call_id"] for call in again["pending_approvals"]] == ["c1"]
    assert refused.returncode == 1
    assert not (command.workspace / "log").exists()
