"""Growth laws, by counting: what a step adds to the database, however long the thread is already."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Outcome, Scope
from graph_agent.store.database import Database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.scenarios.stage import Stage

_STEPS, _PER_TURN, _KEEP_TURNS = 300, 3, 20
_RESULT = 4000
_TABLES = ("checkpoints", "writes", "transcript", "ledger", "journal")


class FourKilobytes(ScriptedToolbox):
    """Every call gives as much as a file's worth of text that nothing can shorten."""

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        return Outcome("success", os.urandom(_RESULT // 2).hex())


@dataclass
class Growth:
    """A thread, looked at after each turn."""

    pages: list[int] = field(default_factory=list)
    rows: list[Mapping[str, int]] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)

    def bytes_per_step(self, first_turn: int, last_turn: int) -> float:
        """Of the turns between two, ends included."""
        grown = self.pages[last_turn] - self.pages[first_turn]
        return grown * 4096 / ((last_turn - first_turn) * _PER_TURN)


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    return asyncio.run(_grow(tmp_path_factory.mktemp("growth") / "agent.db"))


async def _grow(path: Path, steps: int = _STEPS) -> Growth:
    turn = [*([""] * _PER_TURN), "end"]
    replies = [
        calls((f"c{number}-{step}", "read_a")) if not said else text("done")
        for number in range(steps // _PER_TURN)
        for step, said in enumerate(turn)
    ]
    stage = Stage(path, ScriptedModel(*replies), FourKilobytes(), keep_turns=_KEEP_TURNS)
    growth = Growth()
    database = await Database.open(path)
    async with stage.life(database=database) as session:
        for _ in range(steps // _PER_TURN):
            seen: list[str] = []
            await database.run(partial(_trace, seen.append))
            await session.send("go")
            await database.run(partial(_trace, None))
            growth.statements.append(len(seen))
            pages, rows = await database.run(_look)
            growth.pages.append(pages)
            growth.rows.append(rows)
    return growth


def _trace(take: Callable[[str], None] | None, connection: sqlite3.Connection) -> None:
    connection.set_trace_callback(take)


def _look(connection: sqlite3.Connection) -> tuple[int, dict[str, int]]:
    pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES}  # noqa: S608 - names from here
    return pages - free, counts


def test_until_it_is_pruned_a_step_adds_as_many_rows_late_as_early(growth: Growth) -> None:
    first, then = (
        {table: growth.rows[end][table] - growth.rows[end - 9][table] for table in _TABLES} for end in (9, 18)
    )

    assert first == then


def test_a_thread_that_is_pruned_at_rest_grows_with_what_is_new_in_it(growth: Growth) -> None:
    cuts = [
        turn for turn in range(1, 100) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    early, late = 3, cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[early] / early
    assert growth.bytes_per_step(cuts[0], late) <= 4 * _RESULT


def test_checkpoints_do_not_pile_up_while_what_was_said_and_done_stays(growth: Growth) -> None:
    assert growth.rows[-1]["checkpoints"] <= max(rows["checkpoints"] for rows in growth.rows[:30])
    assert growth.rows[-1]["journal"] == growth.rows[-1]["ledger"] == _STEPS


def test_a_turn_takes_as_many_statements_late_as_early(growth: Growth) -> None:
    assert len({*growth.statements[5:15]}) == 1
    # Now and then the thread is pruned at rest, and what that takes is bounded too.
    assert min(growth.statements[50:]) <= growth.statements[5] + 2
    assert max(growth.statements) <= growth.statements[5] + 50


@pytest.mark.sweep
@pytest.mark.timeout(900)
async def test_after_a_thousand_steps_a_thread_takes_no_more_per_step_than_after_ten(tmp_path: Path) -> None:
    growth = await _grow(tmp_path / "agent.db", 1002)
    cuts = [
        turn for turn in range(1, 334) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    late = cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[3] / 3
    assert growth.bytes_per_step(cuts[0], late) <= 4 * _RESULT
    assert max(growth.statements) <= growth.statements[5] + 50
