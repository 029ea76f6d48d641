"""The real command forks, rewinds with its files and prunes: what is on disk, what is sent, what is asked."""

from pathlib import Path
from typing import Any

from tests.fakes.openai_server import TC, TXT
from tests.scenarios.command import Command, scripted


def test_rewound_by_the_command_a_file_is_as_it_was_and_the_call_is_a_new_attempt_newly_approved(
    tmp_path: Path,
) -> None:
    script = [TC("w1", "write_file", {"file_path": "d/a.txt", "content": "new\n"}), TXT("done"), TXT("done again")]
    with scripted(tmp_path, script) as command:
        _, asking = command.run_json("go", "--thread", "t1")
        command.run_json("--resume", "t1", "--approve", "all")
        before = list(command.workspace.rglob("*"))
        rewound = command("rewind", asking["checkpoint_id"], "--yes")
        after = list(command.workspace.rglob("*"))
        _, asked = command.run_json("--resume", "t1")
        code, again = command.run_json("--resume", "t1", "--approve", "w1")

    assert ([path.name for path in before], rewound.returncode, after) == (["d", "a.txt"], 0, [])
    assert [(call["call_id"], call["attempt"]) for call in asked["pending_approvals"]] == [("w1", 1)]
    assert (code, again["answer"], (command.workspace / "d/a.txt").read_text()) == (0, "done again", "new\n")
    assert [call["attempt"] for call in command.json("calls", "t1")["calls"]] == [2]


def test_a_fork_goes_on_beside_its_origin_and_pruned_threads_stay_whole(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT(f"answer {number}") for number in range(9)]) as command:
        _, first = command.run_json("t1", "--thread", "t1")
        command.run_json("t2", "--thread", "t1")
        forked = command.json("fork", first["checkpoint_id"], "--as", "f1")
        pruned = command.json("threads", "prune", "--keep", "1")
        command.run_json("t2 of the fork", "--resume", "f1")
        sent = [
            message["content"] for message in command.server.bodies[-1]["messages"] if message["role"] == "user"
        ]
        command.run_json("t3", "--resume", "t1")
        kept = [
            message["content"] for message in command.server.bodies[-1]["messages"] if message["role"] == "user"
        ]

    assert (forked["thread_id"], forked["parent_thread"], forked["turns"]) == ("f1", "t1", 1)
    assert {one["thread_id"] for one in pruned["threads"]} == {"t1", "f1"}
    assert (sent, kept) == (["t1", "t2 of the fork"], ["t1", "t2", "t3"])


def _shown(command: Command, *options: str) -> list[Any]:
    entries = command.json("threads", "show", "t1", *options)["transcript"]
    return [entry["body"]["content"] for entry in entries if entry["role"] == "user"]


def test_a_thread_resumed_from_an_older_checkpoint_goes_on_as_a_branch_that_the_next_run_keeps(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, [TXT(f"answer {number}") for number in range(6)]) as command:
        _, first = command.run_json("t1", "--thread", "t1")
        command.run_json("t2", "--thread", "t1")
        _, old = command.run_json("t3", "--thread", "t1")
        branched, _ = command.run_json("t2b", "--resume", first["checkpoint_id"])
        went_on, _ = command.run_json("t3b", "--resume", "t1")
        told, on_the_branch = command.said(), _shown(command)
        left = command("inspect", old["checkpoint_id"]).returncode
        back, again = command.run_json("--resume", old["checkpoint_id"])

    assert (branched, went_on, left, back) == (0, 0, 0, 0)
    assert told == on_the_branch == ["t1", "t2b", "t3b"]
    assert (again["answer"], _shown(command)) == ("answer 2", ["t1", "t2", "t3"])
    assert _shown(command, "--all-branches") == ["t1", "t2", "t3", "t2b", "t3b"]


def test_an_approval_that_was_not_used_is_asked_for_again_and_one_that_was_never_runs_twice(tmp_path: Path) -> None:
    script = [TC("c1", "bash", {"command": "echo x >> log"}), TXT("done"), TXT("done again")]
    with scripted(tmp_path, script) as command:
        _, asking = command.run_json("go", "--thread", "t1")
        command("approvals", "approve", "c1")
        _, before = command.run_json("--resume", asking["checkpoint_id"], "--recover", "ask")
        code, after = command.run_json("--resume", asking["checkpoint_id"])

    assert (before["status"], after["status"], code) == ("done", "done", 0)
    assert (command.workspace / "log").read_text() == "x\n"
    assert command.server.bodies[-1]["messages"][-1]["tool_call_id"] == "c1"


def test_an_approval_given_on_the_branch_that_was_left_is_asked_for_again(tmp_path: Path) -> None:
    script = [TXT("hello"), TC("c1", "bash", {"command": "echo x >> log"}), TXT("other")]
    with scripted(tmp_path, script) as command:
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
