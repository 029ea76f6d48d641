"""Growth laws, by counting: what a step adds to the database, however long the thread is already."""

import asyncio
import io
import json
import re
import tracemalloc
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest

from graph_agent.cli.views.calls import list_calls
from graph_agent.cli.views.threads import show_thread
from graph_agent.graph.context_size import request_ceiling
from tests.architecture.checkout import ROOT
from tests.fakes.openai_server import TC, TCS, TXT
from tests.scenarios.command import scripted
from tests.scenarios.growing import PER_TURN, RESULT, WINDOW, Growth, grow
from tests.scenarios.stage import THREAD

_STEPS, _KEEP_TURNS = 300, 20
_TABLES = ("checkpoints", "writes", "transcript", "call_log", "journal")


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    return asyncio.run(grow(tmp_path_factory.mktemp("growth") / "agent.db", _STEPS, _KEEP_TURNS))


@pytest.mark.slow
def test_until_it_is_pruned_a_step_adds_as_many_rows_late_as_early(growth: Growth) -> None:
    first, then = (
        {table: growth.rows[end][table] - growth.rows[end - 2][table] for table in _TABLES} for end in (2, 4)
    )

    assert first == then


def test_a_thread_that_is_pruned_at_rest_grows_with_what_is_new_in_it(growth: Growth) -> None:
    cuts = [
        turn for turn in range(1, 100) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    early, late = 3, cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[early] / early
    assert growth.bytes_per_step(cuts[0], late) <= 4 * RESULT


def test_checkpoints_do_not_pile_up_while_what_was_said_and_done_stays(growth: Growth) -> None:
    assert growth.rows[-1]["checkpoints"] <= max(rows["checkpoints"] for rows in growth.rows[:30])
    assert growth.rows[-1]["journal"] == growth.rows[-1]["call_log"] == _STEPS


def test_a_turn_takes_as_many_statements_late_as_early(growth: Growth) -> None:
    # Once a while it is also looked whether somebody sent an urgent message.
    assert max(growth.statements[1:5]) - min(growth.statements[1:5]) <= 6
    # Now and then the thread is pruned while idle or its context compacted; the cost of that is bounded too.
    assert min(growth.statements[50:]) <= growth.statements[4] + 2
    assert max(growth.statements) <= growth.statements[4] + 300


def test_the_database_works_as_hard_for_a_turn_late_as_early(growth: Growth) -> None:
    # It reads the live window once, which holds some twenty steps; beyond that it looks at no more rows.
    middle, late = (sorted(part) for part in (growth.effort[20:60], growth.effort[60:]))

    assert late[len(late) // 2] <= 1.2 * middle[len(middle) // 2]
    assert late[len(late) // 2] <= 8 * growth.effort[0]


def test_a_step_waits_for_the_disk_four_times(growth: Growth) -> None:
    of_the_steps = 4 * PER_TURN
    of_the_turn = growth.syncs[1] - of_the_steps

    # Call marked, claimed and finished, results passed to the model; what was typed, twice; how the turn ended.
    assert (growth.syncs[1:5], of_the_turn) == ([growth.syncs[1]] * 4, 3)


def test_the_page_about_performance_says_what_a_turn_costs(growth: Growth) -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = page.partition("## What a step costs")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \|$", table, re.MULTILINE)
    said = {name: int(number.replace(",", "")) for name, number in rows}
    kept = [rows["checkpoints"] for rows in growth.rows]
    cuts = [turn for turn in range(1, 60) if kept[turn] < kept[turn - 1]]
    exact = {f"rows in `{table}`": growth.rows[3][table] - growth.rows[2][table] for table in _TABLES}
    counted = {
        **exact,
        "statements": growth.statements[3],
        "transactions that wait for the disk": growth.syncs[3],
        "switches to the database's thread": growth.handed_over[3],
        "bytes, until it is pruned": round(growth.bytes_per_step(2, 4) * PER_TURN),
        "bytes that stay": round(growth.bytes_per_step(cuts[0], cuts[-1]) * PER_TURN),
    }

    assert {name: said[name] for name in exact} == exact
    assert said == pytest.approx(counted, rel=0.1)


def test_of_a_step_only_what_waits_for_the_disk_changes_threads(growth: Growth) -> None:
    once_a_turn = [handed - syncs for handed, syncs in zip(growth.handed_over, growth.syncs, strict=True)]

    # As a turn begins and ends, the thread is looked up, and once a while whether somebody sent an urgent message;
    # one more in each step would be at least PER_TURN more.
    assert sorted(once_a_turn)[len(once_a_turn) // 2] <= 11
    assert growth.syncs[1] >= 4 * PER_TURN


def test_a_process_holds_as_many_objects_after_three_hundred_steps_as_after_a_hundred(growth: Growth) -> None:
    # What is loaded once, whenever that is, is no growth: somewhere between two counts nothing is added.
    assert len(growth.objects) >= 4
    assert min(later - earlier for earlier, later in pairwise(growth.objects[1:])) <= 10


def test_a_request_is_as_big_late_as_early(growth: Growth) -> None:
    (messages, tokens), (late_messages, late_tokens) = (
        (max(sizes[0] for sizes in part), max(sizes[1] for sizes in part))
        for part in (growth.requests[:150], growth.requests[150:])
    )

    assert (late_messages <= 1.3 * messages, late_tokens <= 1.1 * tokens) == (True, True)
    assert max(tokens, late_tokens) <= request_ceiling(WINDOW)


def test_a_request_has_as_much_to_write_out_late_as_early(growth: Growth) -> None:
    early, late = (sorted(part) for part in (growth.unknown[20:200], growth.unknown[200:]))

    # A reply and its result; a turn begins with the messages of the one before read back, once.
    assert (early[len(early) // 2], late[len(late) // 2]) == (2, 2)
    assert late[len(late) * 9 // 10] <= 4 * PER_TURN
    assert sum(late) / len(late) <= 1.5 * sum(early) / len(early)


def test_each_request_begins_with_the_bytes_of_the_one_before_but_not_in_another_mode_with_other_tools(
    tmp_path: Path,
) -> None:
    reads = (("c1", "ls", {"path": "."}), ("c2", "grep", {"pattern": "x"}))
    touch, write = (
        TC("c3", "bash", {"command": "touch made"}),
        TC("c4", "write_file", {"file_path": "a", "content": "x"}),
    )
    script = [TCS(*reads), touch, TXT("made"), write, TXT("written"), TXT("read"), TXT("planned")]
    with scripted(tmp_path, script) as command:
        for arguments in (
            ("go", "--thread", "t1"),
            ("--resume", "t1", "--approve", "all"),
            ("write", "--resume", "t1", "--mode", "acceptEdits"),
            ("more", "--resume", "t1", "--model", "fake"),
            ("plan", "--resume", "t1", "--mode", "plan"),
        ):
            command.run_json(*arguments)
    bodies = [json.dumps(body) for body in command.server.bodies]

    assert [later.startswith(one.removesuffix("]}")) for one, later in pairwise(bodies)] == [True] * 5 + [False]


class _Sink(io.TextIOBase):
    """Stands for stdout, and counts."""

    length = 0

    def write(self, text: str) -> int:
        self.length += len(text)
        return len(text)


@pytest.mark.parametrize(
    "show",
    [
        lambda path: list_calls(path, THREAD, status=None, tool=None, as_json=True),
        lambda path: show_thread(path, THREAD, None, as_json=True),
        lambda path: show_thread(path, THREAD, None, full=True),
    ],
    ids=["calls --json", "threads show --json", "threads show --full"],
)
def test_showing_a_long_thread_whole_never_has_the_whole_in_memory(
    growth: Growth, show: Callable[[Path], None]
) -> None:
    sink = _Sink()
    with redirect_stdout(_Sink()):
        show(growth.path)  # loads what it needs
    tracemalloc.start()

    with redirect_stdout(sink):
        show(growth.path)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sink.length >= _STEPS * RESULT
    assert most <= sink.length / 2


@pytest.mark.sweep
@pytest.mark.timeout(900)
async def test_after_a_thousand_steps_a_thread_takes_no_more_per_step_than_after_ten(tmp_path: Path) -> None:
    growth = await grow(tmp_path / "agent.db", 1002, _KEEP_TURNS)
    cuts = [
        turn for turn in range(1, 334) if growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]
    ]
    late = cuts[-1]

    assert growth.pages[late] / late <= 1.3 * growth.pages[3] / 3
    assert growth.bytes_per_step(cuts[0], late) <= 4 * RESULT
    assert max(growth.statements) <= growth.statements[4] + 400
