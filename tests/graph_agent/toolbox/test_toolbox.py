import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graph_agent.config.redaction import Redactor
from graph_agent.errors import StaleOwner
from graph_agent.ports import Finding, Intent, Outcome, Scope
from graph_agent.toolbox import GraphToolbox
from graph_agent.toolbox.toolbox import (
    add_tool_search,
    as_outcome,
    available_tool_names,
    await_or_default,
    build_declarations,
    denied_tools,
    redact_result,
)
from policy import parse_rules
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
from tools.files import sha256_hex
from tools.registry import ToolRegistry


class Faulty(BaseTool):
    name = "faulty"
    kind = ToolKind.WRITE
    risk_level = ToolRiskLevel.LOW

    async def execute(self) -> ToolResult:
        raise ValueError("broken")

    async def preview(self, args: object, context: ToolContext | None = None) -> Preview:
        raise ValueError("broken preview")

    async def predict_effect(self, args: object, context: ToolContext | None = None) -> None:
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
        return ToolResult(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _offered(world: World, mode: str) -> list[str]:
    return [item["function"]["name"] for item in world.box.declarations(mode)]


def test_only_what_a_mode_and_the_rules_allow_is_offered(tmp_path: Path) -> None:
    world = World(tmp_path, deny=["ls", "bash(rm *)"])

    assert _offered(world, "default") == [
        name for name in world.registry.names() if name not in ("ls", "present_plan")
    ]
    assert {"read_file", "todo_write"} <= {*_offered(world, "plan")}
    assert {"ls", "bash", "write_file"} & {*_offered(world, "plan")} == set()


async def test_computed_descriptions_are_offered_once_prepared(tmp_path: Path) -> None:
    world = World(tmp_path, OddResult())
    assert isinstance(world.box, GraphToolbox)
    before = world.box.declarations("default")[-1]["function"]["description"]

    await world.box.load_descriptions()

    assert (before, world.box.declarations("default")[-1]["function"]["description"]) == ("declared", "computed")


async def test_a_write_is_intended_run_and_reconciled(world: World) -> None:
    path = world.workspace / "a"
    path.write_text("old\n")
    path.chmod(0o640)
    await world.run("read_file", file_path="a")
    arguments = {"file_path": "a", "content": "new\n"}
    plan = await world.plan("write_file", **arguments)
    call, scope = call_of("write_file", arguments), Scope("t1", "default")

    intent = await world.box.record_intent(call, scope)
    before = await world.box.reconcile(call, intent, scope)
    outcome = await world.run("write_file", preview=plan.preview, **arguments)
    after = await world.box.reconcile(call, intent, scope)

    assert intent == Intent(
        str(path),
        sha256_hex(b"old\n"),
        sha256_hex(b"new\n"),
        f"blob:sha256:{sha256_hex(b'old' + bytes([10]))}",
        0o640,
    )
    assert world.around.blobs.get(str(intent.before_blob)) == b"old\n"
    assert (outcome.status, outcome.output) == ("success", "Wrote a (4 bytes, +1 -1 lines).")
    assert (before.verdict, after.verdict) == ("not_applied", "already_applied")


async def test_consent_to_an_older_file_does_not_cover_the_newer_one(world: World) -> None:
    path = world.workspace / "a"
    path.write_text("old\n")
    await world.run("read_file", file_path="a")
    plan = await world.plan("write_file", file_path="a", content="new\n")
    path.write_text("theirs\n")

    outcome = await world.run("write_file", preview=plan.preview, file_path="a", content="new\n")

    assert (outcome.status, outcome.metadata) == ("error", {"error_type": "validation"})
    assert path.read_text() == "theirs\n"


async def test_an_effect_that_cannot_be_known_has_no_intent_and_stays_unknown(world: World) -> None:
    scope = Scope("t1", "default")

    calls = [("bash", {"command": "x"}), ("read_file", {"file_path": "x"}), ("nobody", {}), ("ls", {})]
    calls.append(("write_file", {"file_path": "/dev/null", "content": ""}))
    assert [await world.box.record_intent(call_of(*call), scope) for call in calls] == [None] * 5

    looked_at = [calls[0], calls[2], calls[3]]
    findings = [await world.box.reconcile(call_of(*call), None, scope) for call in looked_at]
    assert [finding.verdict for finding in findings] == ["unknown", "unknown", "not_applied"]


async def test_a_command_is_recorded_and_its_progress_reported(world: World) -> None:
    (world.workspace / "sub").mkdir()

    outcome = await world.run("bash", cwd=str(world.workspace / "sub"), command="pwd")

    assert outcome.status == "success"
    assert outcome.output == f"{world.workspace / 'sub'}\n[exit code 0]"
    assert world.processes == [("t1", "c1", 2)]
    assert world.progress == [("c1", "shell_output", f"{world.workspace / 'sub'}\n")]
    assert world.around.blobs.spool("t1", "c1", 2).read_text() == f"{world.workspace / 'sub'}\n"


async def test_a_run_that_lost_the_call_does_not_execute_it(tmp_path: Path) -> None:
    world = World(tmp_path, stale=True)

    with pytest.raises(StaleOwner):
        await world.run("bash", command="touch witness")

    assert not (world.workspace / "witness").exists()


async def test_cancelling_a_run_stops_the_command(world: World) -> None:
    task = asyncio.ensure_future(world.run("bash", command="until [ -e go ]; do sleep 0.02; done; touch witness"))
    await until(lambda: world.processes != [])

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    (world.workspace / "go").touch()
    await asyncio.sleep(0.2)
    assert not (world.workspace / "witness").exists()


async def test_a_bug_in_a_tool_is_an_error_outcome_wherever_it_occurs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, Faulty())
    call, scope = call_of("faulty", {}), Scope("t1", "default")

    plan = await world.plan("faulty")
    intent = await world.box.record_intent(call, scope)
    outcome = await world.box.run(call, scope)
    finding = await world.box.reconcile(call, None, scope)

    assert (plan.verdict, plan.reason) == ("unusable", "faulty failed while its call was prepared; see the log.")
    assert intent is None
    assert (outcome.status, outcome.metadata) == ("error", {"error_type": "unknown"})
    assert finding == Finding("unknown", "faulty failed while it checked the effect of the call; see the log.")
    assert [record.exc_info is not None for record in caplog.records] == [True] * 4


async def test_a_long_outcome_is_shortened_and_readable_by_its_reference(tmp_path: Path) -> None:
    world = World(tmp_path, OddResult())

    outcome = await world.run("odd", text="line\n" * 20_000)
    rest = await world.run("read_file", file_path=outcome.metadata["blob"], offset=20_000)

    assert len(outcome.output) < 31_000
    assert rest.output == " 20000\tline\n[lines 20000 to 20000 of 20000]"


@pytest.mark.parametrize(("tool", "arguments"), [("nobody", {}), ("ls", {"depth": "deep"})])
async def test_running_a_call_that_cannot_work_is_an_error_outcome(
    world: World, tool: str, arguments: dict[str, Any]
) -> None:
    assert (await world.run(tool, **arguments)).status == "error"


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


class Reads(BaseTool):
    name = "reads"
    kind = ToolKind.READONLY


class Later(BaseTool):
    name = "later"
    defer = True


def _of_server(number: int) -> BaseTool:
    tool = Reads()
    tool.name, tool.rule_name = f"mcp__s__{number}", f"mcp__s__the {number}"
    return tool


def _registry(*later: BaseTool, servers: int = 0, deny: Sequence[str] = ()) -> tuple[ToolRegistry, frozenset[str]]:
    registry = ToolRegistry(deferred_above=2)
    registry.register(Reads())
    rules = parse_rules(deny=list(deny)).deny
    add_tool_search(registry, rules)
    registry.register_all(later, origin="plugin")
    registry.register_mcp_tools(_of_server(number) for number in range(servers))
    return registry, denied_tools(registry, rules)


def _names(found: list[dict[str, Any]]) -> list[str]:
    return [item["function"]["name"] for item in found]


@pytest.mark.parametrize(
    ("servers", "loaded", "names"),
    [
        (0, [], ["reads"]),
        (2, [], ["reads", "mcp__s__0", "mcp__s__1"]),
        (3, [], ["reads", "tool_search"]),
        (3, ["mcp__s__2", "gone", "mcp__s__0"], ["reads", "tool_search", "mcp__s__2", "mcp__s__0"]),
    ],
)
def test_tools_of_servers_are_deferred_above_a_number_and_come_last_once_loaded(
    servers: int, loaded: list[str], names: list[str]
) -> None:
    registry, denied = _registry(servers=servers)

    assert _names(build_declarations(registry, "default", denied, loaded, {})) == names


def test_a_loaded_tool_changes_nothing_before_it() -> None:
    registry, denied = _registry(Later(), servers=3)

    before = build_declarations(registry, "default", denied, (), {})
    after = build_declarations(registry, "default", denied, ("later",), {})

    assert after[: len(before)] == before
    assert "- later\n- mcp__s__0\n" in before[-1]["function"]["description"]


async def test_a_denied_tool_is_neither_named_nor_found() -> None:
    registry, denied = _registry(Later(), servers=3, deny=["later", "mcp__s__the 1"])
    search = registry.get("tool_search")
    assert search is not None

    declared = build_declarations(registry, "default", denied, ("later", "mcp__s__1"), {})
    found = await search.execute(query="later mcp__s__1 mcp__s__2")

    assert _names(declared) == ["reads", "tool_search"]
    assert found.metadata == {"loaded_tools": ["mcp__s__2"]}


def test_where_searching_is_denied_everything_is_declared() -> None:
    registry, denied = _registry(Later(), deny=["tool_search"])

    assert _names(build_declarations(registry, "default", denied, (), {})) == ["reads", "later"]


def test_plan_mode_defers_only_what_it_offers() -> None:
    registry, denied = _registry(Later())

    assert available_tool_names(registry, "plan", denied) == {"reads"}
    assert available_tool_names(registry, "default", denied) == {"reads", "later", "tool_search"}


async def test_a_bug_of_a_tool_gives_the_default_and_is_logged_but_control_flow_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(error: Exception | None) -> int:
        if error is not None:
            raise error
        return 1

    assert [await await_or_default(work(error), 0) for error in (None, KeyError("x"))] == [1, 0]
    assert "KeyError" in caplog.text
    with pytest.raises(StaleOwner):
        await await_or_default(work(StaleOwner("another run has it")), 0)


def test_no_field_of_a_result_keeps_a_secret() -> None:
    key = "sk-abcdefgh"

    found = redact_result(ToolResult(f"o {key}", f"d {key}", f"e {key}", {"m": [key]}), Redactor([key]))

    stars = "*" * len(key)
    assert found == ToolResult(f"o {stars}", f"d {stars}", f"e {stars}", {"m": [stars]})
    assert redact_result(ToolResult("fine"), Redactor([key])) == ToolResult("fine")


def test_an_outcome_can_always_be_stored() -> None:
    failed = ToolResult("half", display="d", error="e", metadata={"error_type": "timeout", "path": Path("/x")})

    assert as_outcome(failed) == Outcome("error", "half", "e", "d", {"error_type": "timeout", "path": "/x"})
    assert as_outcome(ToolResult("a\udc80b")) == Outcome("success", "a?b")
