"""The context of a call, the words of its progress, its blobs, and the traces of its processes."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.calls import process_marker
from graph_agent.errors import StorageError
from graph_agent.ports import JournalRow, Scope
from graph_agent.storage.blobs import FileBlobs
from graph_agent.toolbox import ToolboxDependencies
from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.tool_context import (
    ProcessTraces,
    ProgressReport,
    StoredBlobs,
    ToolContexts,
    format_progress,
    recorded_traces,
)
from policy import PolicySettings, parse_rules
from tests.fakes.tool_ports import MemoryBlobs, ToolEnvironment
from tests.fakes.toolbox_world import call_of
from tools.base import BytesFetched, FilesSearched, Limits, McpProgress, Progress, ShellOutput, SubAgentStep

_SCOPE = Scope("t1", "default", cwd="/ws/sub", todo=({"content": "a", "status": "pending"},))


async def _record_nothing(thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
    pass


def test_a_call_gets_what_it_runs_with_and_a_preview_gets_nothing_with_an_effect(tmp_path: Path) -> None:
    world, reports = ToolEnvironment(tmp_path), []
    context = PolicyContext(world.workspace, PolicySettings(rules=parse_rules(deny=["read(secret)"])))
    dependencies = ToolboxDependencies(
        world.blobs, world.file_states, _record_nothing, lambda *report: reports.append(report)
    )
    contexts = ToolContexts(context, dependencies, Limits())
    call = call_of("odd", {}) | {"answer": "yes", "preview": {"observed": {"path": "x"}}}

    inside = replace(_SCOPE, cwd=str(world.workspace / "sub"))
    planned, run = contexts.for_thread(inside), contexts.for_call(call, _SCOPE, context.policy.rules)
    run.progress(FilesSearched(3))

    assert (planned.cwd, planned.processes, planned.call_id, planned.answer) == (
        world.workspace / "sub",
        None,
        "",
        None,
    )
    assert (planned.has_policy, run.cwd) == (True, None)
    assert (run.call_id, run.attempt, run.answer, run.observed) == ("c1", 2, "yes", {"path": "x"})
    assert (run.todo, run.thread_id) == (_SCOPE.todo, "t1")
    assert reports == [("c1", ProgressReport("files_searched", "3 files", 3))]
    assert [run.may_read(world.workspace / name) for name in ("secret", "open")] == [False, True]
    later = contexts.for_call(call, _SCOPE, parse_rules(deny=["read(open)", "web_fetch(evil.example)"]))
    assert [later.may_read(world.workspace / name) for name in ("secret", "open")] == [True, False]
    assert [one.host_permission("evil.example").is_denied for one in (run, later)] == [False, True]


@pytest.mark.parametrize(
    ("progress", "report"),
    [
        (ShellOutput("x\n"), ("shell_output", "x\n", None, None)),
        (BytesFetched(5, 10), ("bytes_fetched", "5 of 10 bytes (50 %)", 5, 10)),
        (BytesFetched(15, 10), ("bytes_fetched", "15 of 10 bytes", 15, 10)),
        (BytesFetched(5), ("bytes_fetched", "5 bytes", 5, None)),
        (FilesSearched(3), ("files_searched", "3 files", 3, None)),
        (McpProgress(1, 4), ("mcp_progress", "1 of 4 (25 %)", 1, 4)),
        (McpProgress(1, 4, "half"), ("mcp_progress", "half  1 of 4 (25 %)", 1, 4)),
        (McpProgress(math.nan, math.inf), ("mcp_progress", "0", 0, None)),
        (McpProgress(1, message="half"), ("mcp_progress", "half", 1, None)),
        (SubAgentStep(2, "reads"), ("sub_agent_step", "step 2: reads", 2, None)),
    ],
)
def test_every_progress_has_words(progress: Progress, report: tuple[str, str, float | None, float | None]) -> None:
    assert format_progress(progress) == report


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise StorageError("the disk is full")


def test_blobs_fail_as_tools_expect_it(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        StoredBlobs(MemoryBlobs(tmp_path)).get("blob:sha256:00")
    with pytest.raises(OSError, match="the disk is full"):
        StoredBlobs(_FullDisk(tmp_path)).put(b"x")


def test_the_processes_of_an_attempt_are_identified_by_group_mark_and_spool(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    row = JournalRow("c1", 2, "run", "executing", "", process_group=7, process_started="9")
    traces = ProcessTraces(7, "9", process_marker("run", "c1", 2), str(blobs.spool("t1", "c1", 2)))

    assert recorded_traces(row, "t1", blobs) == traces
    assert recorded_traces(JournalRow("c1", 1, "run", "executing", ""), "t1", blobs) is None
