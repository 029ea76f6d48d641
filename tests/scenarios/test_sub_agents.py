import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import TC, TCS, TXT
from tests.scenarios.command import Scripted, scripted, until

_TASK = TC("p1", "new_task", {"prompt": "append a", "description": "keep the log"})
_SCRIPT = [_TASK, TC("c1", "bash", {"command": "sleep 0.7; echo a >> log.txt"}), TXT("it is kept"), TXT("all done")]


def test_a_sub_agent_asks_in_the_chat_by_its_name_and_what_it_was_let_do_is_done_once(tmp_path: Path) -> None:
    with scripted(tmp_path, _SCRIPT) as command:
        chat = command.chat("chat", "go")
        chat.plays("sub-agent 'keep the log' asks", "? help")
        [waiting] = command.json("approvals", "list")["approvals"]
        elsewhere = command("run", "go on", "--resume", waiting["thread_id"])
        chat.plays("<y", "step 1: $ sleep 0.7", "it is kept", "all done", "^\x04")
        code = chat.ends()

    assert elsewhere.returncode == 7
    assert (code, (command.workspace / "log.txt").read_text()) == (0, "a\n")


def test_headless_it_ends_with_3_until_another_process_approves_what_the_sub_agent_asks(tmp_path: Path) -> None:
    with scripted(tmp_path, _SCRIPT) as command:
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
    assert (waiting["tool_name"], waiting["thread_id"] != "t", len(command.server.bodies)) == ("bash", True, 4)


def _call(kind: str, name: str) -> tuple[str, str, dict[str, Any]]:
    if kind == "task":
        return name, "new_task", {"prompt": "append", "description": name}
    return name, "bash", {"command": f"echo {name} >> log.txt"}


@pytest.mark.parametrize("order", ["bnnb", "nb", "nn"])
def test_what_was_approved_behind_sub_agents_runs_after_they_have_asked(tmp_path: Path, order: str) -> None:
    calls = [_call("task" if kind == "n" else "bash", f"p{number}") for number, kind in enumerate(order)]
    own = [TC(*_call("bash", f"c{number}")) for number in range(order.count("n"))]
    script = [TCS(*calls), *own, *[TXT("appended")] * len(own), TXT("all done")]
    with scripted(tmp_path, script) as command:
        first, _ = command.run_json("go", "--thread", "t")
        codes = [first]
        while codes[-1] == 3 and len(codes) < 5:
            interrupted = [call for call in command.json("calls")["calls"] if call["status"] == "interrupted"]
            assert all(call["tool_name"] == "new_task" for call in interrupted)
            code, last = command.run_json("--resume", "t", "--approve", "all")
            codes.append(code)
        logged = (command.workspace / "log.txt").read_text().split()

    assert (codes, last["answer"]) == ([3] * (2 if "b" in order else 1) + [0], "all done")
    assert [line for line in logged if line[0] == "p"] == [call[0] for call in calls if call[1] == "bash"]
    assert sorted(line for line in logged if line[0] == "c") == [f"c{number}" for number in range(len(own))]


_WAITING_TOOL = """
import asyncio
from pathlib import Path
from pydantic import BaseModel
from tools.base import BaseTool, ToolResult, ToolRiskLevel

class NoArguments(BaseModel):
    pass

class WaitForGo(BaseTool):
    name = "wait_for_go"
    description = "waits"
    risk_level = ToolRiskLevel.MEDIUM
    args_schema = NoArguments
    def __init__(self, *, workspace: str | Path | None = None) -> None:
        self._workspace = Path(workspace or ".")
    def is_concurrency_safe(self, args) -> bool:
        return True
    async def execute(self) -> ToolResult:
        (self._workspace / "started").touch()
        await asyncio.sleep(60)
        return ToolResult("went")
"""


@pytest.mark.parametrize("named", ["all", "the call"])
def test_a_call_of_a_sub_agent_is_approved_also_while_the_parent_waits_for_a_recovery_decision(
    tmp_path: Path, named: str
) -> None:
    calls = [("p0", "wait_for_go", {}), ("p1", "new_task", {"prompt": "append", "description": "keep the log"})]
    script = [TCS(*calls), _SCRIPT[1], TXT("appended"), TXT("all done")]
    with scripted(tmp_path, script) as command:
        (tmp_path / "home" / "tools").mkdir(parents=True)
        (tmp_path / "home" / "tools" / "waiting.py").write_text(_WAITING_TOOL)
        asked, _ = command.run_json("go", "--thread", "t")
        process = command.start("run", "--resume", "t", "--approve", "all")
        until((command.workspace / "started").exists)
        until(lambda: bool(command.json("approvals", "list")["approvals"]))
        command.kill(process)
        [waiting] = command.json("approvals", "list")["approvals"]
        name = "all" if named == "all" else waiting["call_id"]
        decide, told = command.run_json("--resume", "t", "--approve", name)
        left = command.json("approvals", "list")["approvals"]
        command("recover", "t", "--done", "p0", "--result", "it went")
        ended, last = command.run_json("--resume", "t")
        logged = (command.workspace / "log.txt").read_text()

    assert (asked, decide, [call["call_id"] for call in told["interrupted_calls"]]) == (3, 4, ["p0"])
    assert (left, ended, last["answer"], logged) == ([], 0, "all done", "a\n")


def test_in_mode_auto_nobody_judges_for_a_sub_agent_since_its_task_is_in_no_words_of_the_user(
    tmp_path: Path,
) -> None:
    write = TC("c1", "write_file", {"file_path": "a.txt", "content": "a"})
    yes = TXT('{"allow": true, "reason": "it was asked for"}')
    with scripted(tmp_path, [_TASK, write, yes, yes]) as command:
        asked, told = command.run_json("go", "--mode", "auto")

    [waiting] = told["pending_approvals"]
    assert (asked, waiting["tool_name"], len(command.server.bodies)) == (3, "write_file", 2)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_cut_while_a_sub_agent_works_its_call_ends_in_order_and_the_parent_goes_on_once(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    work = {"command": "echo a >> log.txt; sleep 1.5; echo b >> log.txt"}
    script = [_TASK, TC("c1", "bash", work), TXT("then"), TXT("at last")]
    with scripted(tmp_path, script) as command:
        process = command.start("run", "go", "--thread", "t", "--mode", "bypassPermissions")
        until((command.workspace / "log.txt").exists)
        process.send_signal(number)
        ended = process.wait(timeout=30)
        cut = {call["tool_name"]: call["status"] for call in command.json("calls")["calls"]}
        written = (command.workspace / "log.txt").read_text()
        end, last = command.run_json("--resume", "t")
        threads = [thread["status"] for thread in command.json("threads", "list")["threads"]]

    # A person who stops it gives up what runs; a signal lets it end, and the rest waits for the next life.
    is_stopped = number is signal.SIGINT
    assert (ended, written) == (code, "a\n" if is_stopped else "a\nb\n")
    assert cut == (
        {"new_task": "cancelled", "bash": "cancelled"}
        if is_stopped
        else {"new_task": "interrupted", "bash": "success"}
    )
    assert (end, last["answer"], threads) == (0, "then" if is_stopped else "at last", ["idle", "idle"])
    assert ((command.workspace / "log.txt").read_text()) == (written)


def test_esc_in_the_chat_stops_a_sub_agent_at_work_and_a_hang_up_leaves_the_next_to_be_gone_on_with(
    tmp_path: Path,
) -> None:
    slow = TC("c1", "bash", {"command": "echo a >> log.txt; sleep 30"})
    quick = TC("c2", "bash", {"command": "echo b >> log.txt; sleep 1.5; echo c >> log.txt"})
    script = [_TASK, slow, TC("p2", "new_task", {"prompt": "more"}), quick, TXT("noted"), TXT("at last")]
    with scripted(tmp_path, script) as command:
        arguments = ["chat", "go", "--thread", "t", "--mode", "bypassPermissions"]
        chat = command.chat(*arguments)
        log = command.workspace / "log.txt"
        until(log.exists)
        chat.plays("^\x1b", "Stopped.", "> ", "<and now?")
        until(lambda: "b" in log.read_text())
        chat.signals(signal.SIGHUP)
        ended = chat.ends()
        cut = [(call["tool_name"], call["status"]) for call in command.json("calls")["calls"]]
        end, last = command.run_json("--resume", "t")

    assert (ended, "graph-agent resume t" in chat.output) == (129, True)
    assert sorted(cut) == [
        ("bash", "cancelled"),
        ("bash", "success"),
        ("new_task", "cancelled"),
        ("new_task", "interrupted"),
    ]
    assert (end, last["answer"], log.read_text()) == (0, "at last", "a\nb\nc\n")


def test_killed_in_a_call_two_sub_agents_deep_it_is_decided_from_the_top_and_goes_on_once(tmp_path: Path) -> None:
    deeper = TC("p2", "new_task", {"prompt": "append a", "description": "write it"})
    work = TC("c1", "bash", {"command": "echo a >> log.txt; sleep 30"})
    script = [_TASK, deeper, work, TXT("written"), TXT("it is kept"), TXT("all done")]
    with scripted(tmp_path, script) as command:
        process = command.start("run", "go", "--thread", "t", "--mode", "bypassPermissions")
        until((command.workspace / "log.txt").exists)
        command.kill(process)
        asked, told = command.run_json("--resume", "t")
        [resumable] = told["interrupted_calls"]
        decided = command("recover", "t", "--done", resumable["call_id"], "--result", "it was appended")
        ended, last = command.run_json("--resume", "t")

    assert (asked, resumable["tool_name"], decided.returncode, ended) == (4, "bash", 0, 0)
    assert (last["answer"], (command.workspace / "log.txt").read_text()) == ("all done", "a\n")
    assert (len(command.server.bodies)) == (6)


def test_in_the_chat_a_budget_that_sub_agents_used_up_asks_whether_they_go_on_and_they_do(tmp_path: Path) -> None:
    looks = [TC(f"l{number}", "ls", {}) for number in range(4)]
    with scripted(tmp_path, [_TASK, *looks, TXT("noted"), TXT("all done")], settings="max_steps = 4\n") as command:
        chat = command.chat("chat", "go")
        chat.sees("Continue? [y]es  [n]o > ")
        asked = len(command.server.bodies)
        chat.plays("<y", "all done", "^\x04")
        code = chat.ends()

    assert (code, asked, len(command.server.bodies)) == (0, 4, 7)


def _define(command: Scripted, text: str, name: str = "reviewer") -> None:
    file = command.folder / "home" / "agents" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _seen(body: Any) -> tuple[str, str, list[str]]:
    """The model, the end of the system prompt and the tools of a request."""
    prompt = str(body["messages"][0]["content"])
    return body["model"], prompt.rpartition("\n\n")[2], [tool["function"]["name"] for tool in body.get("tools", ())]


_REVIEWER = "---\ntools: [read_file, bash]\nmodel: small\nmode: {}\n---\nYou review."


def test_a_task_for_a_defined_agent_gets_its_instructions_tools_model_and_mode_also_after_a_kill(
    tmp_path: Path,
) -> None:
    task = TC("p1", "new_task", {"prompt": "look", "agent": "reviewer"})
    script = [task, TC("c1", "bash", {"command": "echo a >> log.txt; sleep 30"}), TXT("fine"), TXT("all done")]
    with scripted(tmp_path, script) as command:
        _define(command, _REVIEWER.format(""))
        process = command.start("run", "go", "--thread", "t", "--mode", "bypassPermissions")
        until((command.workspace / "log.txt").exists)
        command.kill(process)
        _define(command, "---\ntools: ls\n---\nYou changed.")
        asked, _ = command.run_json("--resume", "t")
        command("recover", "t", "--all", "cancel")
        ended, last = command.run_json("--resume", "t")
        parent, child, again, _ = map(_seen, command.server.bodies)

    assert (asked, ended, last["answer"]) == (4, 0, "all done")
    assert (child, again) == (("small", "You review.", ["read_file", "bash"]),) * 2
    assert (parent[0] != "small", "new_task" in parent[2], "You review." in parent[1]) == (True, True, False)


@pytest.mark.parametrize(("mode", "asked"), [("plan", ["read_file"]), ("bypassPermissions", [])])
def test_the_mode_of_an_agent_is_used_only_where_it_is_stricter(
    tmp_path: Path, mode: str, asked: list[str]
) -> None:
    task = TC("p1", "new_task", {"prompt": "look", "agent": "reviewer"})
    with scripted(tmp_path, [task, TXT("fine"), TXT("all done")]) as command:
        _define(command, _REVIEWER.format(mode))
        code, _ = command.run_json("go")
        errors = [call["error_msg"] or "" for call in command.json("calls")["calls"]]
        tools = [_seen(body)[2] for body in command.server.bodies[1:2]]

    assert (code, tools[0] == asked) == (0, bool(asked))
    assert any("bypassPermissions" in error for error in errors) == (not asked)


def test_a_thread_works_as_the_agent_it_was_started_with(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("one"), TXT("two")]) as command:
        _define(command, _REVIEWER.format("plan"))
        _define(command, "---\nmodle: x\n---\nYou fail.", "broken")
        unknown = command("run", "go", "--agent", "nobody")
        not_shown = command("agents", "show", "nobody")
        first = command("run", "go", "--agent", "reviewer", "--thread", "t")
        _define(command, "---\ntools: ls\n---\nYou changed.")
        second = command("run", "and?", "--resume", "t")
        again = command("run", "and?", "--resume", "t", "--agent", "reviewer")
        seen = [_seen(body) for body in command.server.bodies]
        [thread] = command.json("threads", "list")["threads"]

    assert [ran.returncode for ran in (unknown, first, second, again)] == [2, 0, 0, 2]
    assert "There is no agent 'nobody'. Defined: reviewer." in unknown.stderr
    assert (not_shown.returncode, not_shown.stderr) == (2, unknown.stderr)
    assert seen == [("small", "You review.", ["read_file", "present_plan"])] * 2
    assert thread["mode"] == "plan"
