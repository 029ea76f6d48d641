from pathlib import Path

import pytest

from graph_agent.ports import SystemClock
from graph_agent.storage import open_database
from graph_agent.storage.sqlite.tasks import NewTask, TaskTable, read_tasks


@pytest.mark.parametrize(
    ("not_before", "every", "runs"),
    [
        ("", 60, 2),
        ("2020-01-01T00:00:00Z", 60, 2),
        ("0001-01-01T00:00:00Z", 60, 2),
        ("", 520 * 7 * 86_400, 2),
        ("", 8_000 * 365 * 86_400, 1),
        ("", 2**62, 1),
    ],
)
async def test_a_repeated_task_is_queued_again_unless_no_calendar_reaches_that_far(
    tmp_path: Path, not_before: str, every: int, runs: int
) -> None:
    path = tmp_path / "agent.db"
    async with await open_database(path) as database:
        tasks = TaskTable(database, SystemClock())
        first = await tasks.add(NewTask("go", str(tmp_path), "default", not_before=not_before, every=every), "me")
        begun = await tasks.begin(first.task_id, "worker")
        again = await tasks.begin(first.task_id, "worker")

    found = read_tasks(path)
    assert (begun is not None, again is not None, len(found)) == (True, True, runs)
    assert {task.not_before > first.added_at for task in found if task.task_id != first.task_id} <= {True}
