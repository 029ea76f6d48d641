"""The real command forks, rewinds with its files and prunes: what is on disk, what is sent, what is asked."""

from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command


def test_rewound_by_the_command_a_file_is_as_it_was_and_the_call_is_a_new_attempt_newly_approved(
    tmp_path: Path,
) -> None:
    script = [TC("w1", "write_file", {"file_path": "d/a.txt", "content": "new\n"}), TXT("done"), TXT("done again")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
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
    assert server.faults == []


def test_a_fork_goes_on_beside_its_origin_and_pruned_threads_stay_whole(tmp_path: Path) -> None:
    with FakeOpenAI([TXT(f"answer {number}") for number in range(9)], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        _, first = command.run_json("t1", "--thread", "t1")
        command.run_json("t2", "--thread", "t1")
        forked = command.json("fork", first["checkpoint_id"], "--as", "f1")
        pruned = command.json("threads", "prune", "--keep", "1")
        command.run_json("t2 of the fork", "--resume", "f1")
        sent = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
        command.run_json("t3", "--resume", "t1")
        kept = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]

    assert (forked["thread_id"], forked["parent_thread"], forked["turns"]) == ("f1", "t1", 1)
    assert {one["thread_id"] for one in pruned["threads"]} == {"t1", "f1"}
    assert (sent, kept) == (["t1", "t2 of the fork"], ["t1", "t2", "t3"])
