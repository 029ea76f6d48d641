import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graph_agent.errors import StaleOwner
from graph_agent.ports import Finding, Intent, Outcome, Plan, Scope
from graph_agent.toolbox import GraphToolbox
from tests.fakes.toolbox_world import World, call_of
from tests.fakes.waiting import until
from tools.base import (
    BaseTool,
    InterruptedCall,
    Preview,
    Reconciliation,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
)
from tools.files import digest


class Faulty(BaseTool):
    name = "faulty"
    kind = ToolKind.WRITE
    risk_level = ToolRiskLevel.LOW

    async def execute(self) -> ToolResult:
        raise ValueError("broken")

    async def preview(self, args: object, context: ToolContext | None = None) -> Preview:
        raise ValueError("broken preview")

    async def foresee(self, args: object, context: ToolContext | None = None) -> None:
        raise ValueError("broken forecast")

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        raise ValueError("broken look")


class Odd(BaseModel):
    text: str = ""


class OddResult(BaseTool):
    name = "odd"
    description = "declared"
    args_schema = Odd
    kind = ToolKind.READONLY
    risk_level = ToolRiskLevel.LOW

    async def describe(self) -> str:
        return "computed"

    async def execute(self, *, text: str = "") -> ToolResult:
        return ToolResult(text or "a\udc80b", metadata={"place": Path("/x"), "n": 1})


async def test_a_read_inside_is_allowed_and_needs_no_preview(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan(" Read\n", path="a.txt", offset="2")

    assert plan == Plan(
        tool_name="read_file",
        arguments={"file_path": "a.txt", "offset": 2},
        verdict="allow",
        reason="read_file has low risk.",
        rule="risk low",
        risk="low",
        kind="readonly",
        concurrency_safe=True,
        display="read_file a.txt (offset 2)",
        paths=(str(world.workspace / "a.txt"),),
    )


async def test_a_write_asks_with_its_diff_and_what_the_diff_was_made_from(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("write_file", file_path="a.txt", content="x\n")

    path = str(world.workspace / "a.txt")
    assert (plan.verdict, plan.risk, plan.kind, plan.concurrency_safe) == ("ask", "medium", "write", False)
    assert plan.preview == {
        "kind": "diff",
        "text": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n",
        "seen": {"path": path, "device": None, "inode": None, "sha256": None},
    }
    assert not (world.workspace / "a.txt").exists()


async def test_a_command_asks_with_how_it_was_understood(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("bash", command="make\nmake test")

    assert (plan.verdict, plan.risk, plan.kind, plan.display) == ("ask", "high", "execute", "$ make (+1 lines)")
    assert plan.preview == {
        "kind": "text",
        "text": f"runs    make\nruns    make test\nin      {world.workspace}",
        "seen": None,
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("search_files", {"query": "x"}, "There is no tool 'search_files'. Did you mean read_file?"),
        ("read_file", {"file_path": "a", "offset": "two"}, 'offset: got "two" (string), expected integer'),
        ("read_file", {"file_path": "a\0b"}, "NUL"),
        ("bash", {"command": " "}, "command: it is empty"),
        ("write_file", {"file_path": ".", "content": ""}, "'.' is a folder"),
    ],
)
async def test_a_call_that_cannot_work_is_unusable_and_says_what_to_do(
    tmp_path: Path, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    plan = await World(tmp_path).plan(tool, **arguments)

    assert (plan.verdict, plan.preview) == ("unusable", None)
    assert reason in plan.reason


async def test_the_agents_own_files_are_denied_in_every_mode(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.workspace / "link").symlink_to(tmp_path / "agent")

    plan = await world.plan("write_file", "bypassPermissions", file_path="link/config.toml", content="x")

    assert (plan.verdict, plan.rule, plan.preview) == ("deny", "agent's own files", None)


async def test_a_read_through_a_link_to_outside_asks_and_names_both(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "secret").write_text("s")
    (world.workspace / "notes").symlink_to(tmp_path / "secret")

    plan = await world.plan("read_file", file_path="notes")

    assert plan.verdict == "ask"
    assert f"notes leads to {tmp_path.resolve() / 'secret'}" in plan.reason


async def test_a_long_preview_is_bounded_and_kept_whole_in_a_blob(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("write_file", file_path="a", content="0123456789\n" * 5000)

    assert plan.preview is not None
    assert len(plan.preview["text"]) < 21_000
    assert plan.preview["text"].endswith(f"the whole text is {plan.preview['full']}]\n")
    assert len(world.around.blobs.get(plan.preview["full"])) == plan.preview["full_chars"]


def _offered(world: World, mode: str) -> list[str]:
    return [item["function"]["name"] for item in world.box.declarations(mode)]


def test_only_what_a_mode_and_the_rules_allow_is_offered(tmp_path: Path) -> None:
    world = World(tmp_path, deny=["ls", "bash(rm *)"])

    assert _offered(world, "default") == [name for name in world.registry.names() if name != "ls"]
    assert {"read_file", "todo_write"} <= {*_offered(world, "plan")}
    assert {"ls", "bash", "write_file"} & {*_offered(world, "plan")} == set()


async def test_computed_descriptions_are_offered_once_prepared(tmp_path: Path) -> None:
    world = World(tmp_path, OddResult())
    assert isinstance(world.box, GraphToolbox)
    before = world.box.declarations("default")[-1]["function"]["description"]

    await world.box.prepare()

    assert (before, world.box.declarations("default")[-1]["function"]["description"]) == ("declared", "computed")


async def test_a_write_is_intended_run_and_reconciled(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = world.workspace / "a"
    path.write_text("old\n")
    path.chmod(0o640)
    await world.run("read_file", file_path="a")
    arguments = {"file_path": "a", "content": "new\n"}
    plan = await world.plan("write_file", **arguments)
    call, scope = call_of("write_file", arguments), Scope("t1", "default")

    intent = await world.box.intend(call, scope)
    before = await world.box.reconcile(call, intent, scope)
    outcome = await world.run("write_file", preview=plan.preview, **arguments)
    after = await world.box.reconcile(call, intent, scope)

    assert intent == Intent(
        str(path), digest(b"old\n"), digest(b"new\n"), f"blob:sha256:{digest(b'old' + bytes([10]))}", 0o640
    )
    assert world.around.blobs.get(str(intent.before_blob)) == b"old\n"
    assert (outcome.status, outcome.output) == ("success", "Wrote a (4 bytes, +1 -1 lines).")
    assert (before.verdict, after.verdict) == ("not_applied", "already_applied")


async def test_consent_to_an_older_file_does_not_cover_the_newer_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = world.workspace / "a"
    path.write_text("old\n")
    await world.run("read_file", file_path="a")
    plan = await world.plan("write_file", file_path="a", content="new\n")
    path.write_text("theirs\n")

    outcome = await world.run("write_file", preview=plan.preview, file_path="a", content="new\n")

    assert (outcome.status, outcome.metadata) == ("error", {"error_type": "validation"})
    assert path.read_text() == "theirs\n"


async def test_what_cannot_be_known_is_not_intended_and_stays_unknown(tmp_path: Path) -> None:
    world = World(tmp_path)
    scope = Scope("t1", "default")

    assert await world.box.intend(call_of("bash", {"command": "x"}), scope) is None
    assert await world.box.intend(call_of("read_file", {"file_path": "x"}), scope) is None
    assert await world.box.intend(call_of("nobody", {}), scope) is None
    assert await world.box.intend(call_of("write_file", {"file_path": "/dev/null", "content": ""}), scope) is None
    assert (await world.box.reconcile(call_of("bash", {"command": "x"}), None, scope)).verdict == "unknown"
    assert (await world.box.reconcile(call_of("nobody", {}), None, scope)).verdict == "unknown"
    assert (await world.box.reconcile(call_of("ls", {}), None, scope)).verdict == "not_applied"


async def test_a_command_is_recorded_reported_and_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.workspace / "sub").mkdir()

    outcome = await world.run("bash", cwd=str(world.workspace / "sub"), command="pwd")

    assert outcome.status == "success"
    assert outcome.output == f"{world.workspace / 'sub'}\n[exit code 0]"
    assert world.processes == [("t1", "c1", 2)]
    assert world.progress == [("c1", "shell_output", f"{world.workspace / 'sub'}\n")]
    assert world.around.blobs.spool("t1", "c1", 2).read_text() == f"{world.workspace / 'sub'}\n"


async def test_a_life_that_lost_the_call_does_not_run_it(tmp_path: Path) -> None:
    world = World(tmp_path, stale=True)

    with pytest.raises(StaleOwner):
        await world.run("bash", command="touch witness")

    assert not (world.workspace / "witness").exists()


async def test_cancelling_a_run_stops_the_command(tmp_path: Path) -> None:
    world = World(tmp_path)
    task = asyncio.ensure_future(world.run("bash", command="sleep 0.4; touch witness"))
    await until(lambda: world.processes != [])

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    assert not (world.workspace / "witness").exists()


async def test_a_bug_in_a_tool_is_an_outcome_wherever_it_strikes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, Faulty())
    call, scope = call_of("faulty", {}), Scope("t1", "default")

    plan = await world.plan("faulty")
    intent = await world.box.intend(call, scope)
    outcome = await world.box.run(call, scope)
    finding = await world.box.reconcile(call, None, scope)

    assert (plan.verdict, plan.reason) == ("unusable", "faulty failed while it was planned; see the log.")
    assert intent is None
    assert (outcome.status, outcome.metadata) == ("error", {"error_type": "unknown"})
    assert finding == Finding("unknown", "faulty failed while it looked; see the log.")
    assert [record.exc_info is not None for record in caplog.records] == [True] * 4


async def test_an_outcome_can_always_be_stored(tmp_path: Path) -> None:
    outcome = await World(tmp_path, OddResult()).run("odd")

    assert outcome == Outcome("success", "a?b", metadata={"place": "/x", "n": 1})


async def test_a_long_outcome_is_shortened_and_readable_by_its_reference(tmp_path: Path) -> None:
    world = World(tmp_path, OddResult())

    outcome = await world.run("odd", text="line\n" * 20_000)
    rest = await world.run("read_file", file_path=outcome.metadata["blob"], offset=20_000)

    assert len(outcome.output) < 31_000
    assert rest.output == " 20000\tline\n[lines 20000 to 20000 of 20000]"


@pytest.mark.parametrize(("tool", "arguments"), [("nobody", {}), ("ls", {"depth": "deep"})])
async def test_running_a_call_that_cannot_work_is_an_error_outcome(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    assert (await World(tmp_path).run(tool, **arguments)).status == "error"


async def test_a_denied_path_stays_hidden_from_searches_above_it_and_through_links(tmp_path: Path) -> None:
    world = World(tmp_path, deny=["read_file(secret/**)"])
    (world.workspace / "secret").mkdir()
    for name in ("secret/key", "open"):
        (world.workspace / name).write_text("hit\n")
    (world.workspace / "link").symlink_to("secret/key")

    found = [await world.run("grep", pattern="hit"), await world.run("glob", pattern="*")]
    plan = await world.plan("grep", pattern="hit", path="link")

    assert [outcome.output for outcome in found] == [
        "open:1:hit\n[left out: 2 withheld by a rule]",
        "open\n[left out: 2 withheld by a rule]",
    ]
    assert plan.verdict == "deny"
