from datetime import timedelta

import pytest

from graph_agent.app.threads import Pruned, PrunedThread
from graph_agent.cli.views.thread_changes import parse_age, parse_size, print_pruned
from graph_agent.errors import UsageError
from graph_agent.storage.sqlite.pruning import GarbageResult


@pytest.mark.parametrize(
    ("text", "age"),
    [("30d", timedelta(days=30)), ("12 H", timedelta(hours=12)), ("2w", timedelta(weeks=2))],
)
def test_an_age_is_a_number_with_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize(("text", "size"), [("500MB", 500_000_000), ("2g", 2_000_000_000), ("17", 17)])
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "d", "-3d", "3 years", "1.5G"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="such as"):
        parse_age(text)
    with pytest.raises(UsageError, match="such as"):
        parse_size(text or "x")


def test_what_went_what_was_left_and_the_sizes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    threads = (PrunedThread("a", 12, 1), PrunedThread("b"), PrunedThread("c", held_by="thread 'c' is held"))

    print_pruned(Pruned(3_000_000, 1_000_000, threads, GarbageResult(2, 500_000)), as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        "a: 12 checkpoints and 1 snapshots went",
        "left alone: thread 'c' is held",
        "2 files that nothing named any more went: 0.5 MB",
        "the database had 3.0 MB and has 1.0 MB now",
    ]
