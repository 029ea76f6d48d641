import os
from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command

_TASK = TC("p1", "new_task", {"prompt": "append a", "description": "keep the log"})
_SCRIPT = [_TASK, TC("c1", "bash", {"command": "sleep 0.7; echo a >> log.txt"}), TXT("it is kept"), TXT("all done")]


def test_a_sub_agent_asks_in_the_chat_by_its_name_and_what_it_was_let_do_is_done_once(tmp_path: Path) -> None:
    with FakeOpenAI(_SCRIPT, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        chat = PtyProgram(["-m", "graph_agent", "chat", "go"], command.workspace, {**os.environ, **command.env})
        chat.sees("sub-agent 'keep the log' asks")
        chat.sees("[s]top the turn > ")
        [waiting] = command.json("approvals", "list")["approvals"]
        elsewhere = command("run", "go on", "--resume", waiting["thread_id"])
        chat.enters("y")
        chat.sees("step 1: $ sleep 0.7")
        chat.sees("it is kept")
        chat.sees("all done")
        chat.types("\x04")
        code = chat.ends()

    assert elsewhere.returncode == 7
    assert (code, (command.workspace / "log.txt").read_text(), server.faults) == (0, "a\n", [])


def test_headless_it_ends_with_3_until_another_process_approves_what_the_sub_agent_asks(tmp_path: Path) -> None:
    with FakeOpenAI(_SCRIPT, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        asked, told = command.run_json("go", "--thread", "t")
        [waiting] = told["pending_approvals"]
        [listed] = command.json("approvals", "list", "--thread", "t")["approvals"]
        still, _ = command.run_json("--resume", "t")
        child = waiting["thread_id"]
        alone = command("run", "go on", "--resume", child)
        approved = command("approvals", "approve", waiting["call_id"])
        ended, last = command.run_json("--resume", "t")

    assert (alone.returncode, "graph-agent resume t" in alone.stderr) == (2, True)
    assert (listed["call_id"], approved.stdout.endswith("graph-agent resume t\n")) == (waiting["call_id"], True)
    assert (asked, still, approved.returncode, ended) == (3, 3, 0, 0)
    assert (last["answer"], (command.workspace / "log.txt").read_text()) == ("all done", "a\n")
    assert (waiting["tool_name"], waiting["thread_id"] != "t", len(server.bodies)) == ("bash", True, 4)


def test_in_mode_auto_nobody_judges_for_a_sub_agent_since_its_task_is_in_no_words_of_the_user(
    tmp_path: Path,
) -> None:
    write = TC("c1", "write_file", {"file_path": "a.txt", "content": "a"})
    yes = TXT('{"allow": true, "reason": "it was asked for"}')
    with FakeOpenAI([_TASK, write, yes, yes], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        asked, told = command.run_json("go", "--mode", "auto")

    [waiting] = told["pending_approvals"]
    assert (asked, waiting["tool_name"], len(server.bodies)) == (3, "write_file", 2)
