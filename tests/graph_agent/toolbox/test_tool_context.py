from pathlib import Path

from graph_agent.ports import Scope
from graph_agent.toolbox import ToolboxDependencies
from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.tool_context import ProgressReport, ToolContexts
from policy import PolicySettings, parse_rules
from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.toolbox_world import call_of
from tools.base import FilesSearched, Limits

SCOPE = Scope("t1", "default", cwd="/ws/sub", todo=({"content": "a", "status": "pending"},))


async def _records_nothing(thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
    pass


def test_a_call_gets_what_it_runs_with_and_planning_gets_nothing_that_has_effects(tmp_path: Path) -> None:
    world, told = ToolSurroundings(tmp_path), []
    policy = PolicySettings(rules=parse_rules(deny=["read(secret)"]))
    ports = ToolboxDependencies(world.blobs, world.file_states, _records_nothing, lambda *said: told.append(said))
    around = ToolContexts(PolicyContext(world.workspace, policy), ports, Limits())
    call = call_of("odd", {}) | {"answer": "yes", "preview": {"observed": {"path": "x"}}}

    planned, run = around.for_thread(SCOPE), around.for_call(call, SCOPE)
    run.progress(FilesSearched(3))

    assert (planned.cwd, planned.processes, planned.call_id, planned.answer) == (Path("/ws/sub"), None, "", None)
    assert (run.call_id, run.attempt, run.answer, run.observed) == ("c1", 2, "yes", {"path": "x"})
    assert (run.todo, run.thread_id, told) == (
        SCOPE.todo,
        "t1",
        [("c1", ProgressReport("files_searched", "3 files", 3))],
    )
    assert [run.may_read(world.workspace / name) for name in ("secret", "open")] == [False, True]
