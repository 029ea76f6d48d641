import pytest

from graph_agent.errors import UnknownId
from graph_agent.inspect import Reader
from tests.fakes.database_rows import Rows

_GONE, _STANDING = "1f1eac6a-7522-6fcc-8002-13ceac9a1775", "1f1eac6a-9000-6fcc-8002-13ceac9a1777"


@pytest.mark.parametrize("text", [_GONE, "1f1eac6a-75", "9a1775", f"t1:{_GONE}"])
def test_an_id_that_was_pruned_is_answered_with_the_next_one_that_stands(rows: Rows, text: str) -> None:
    rows.thread()
    rows.execute("INSERT INTO pruned (thread_id, checkpoint_id) VALUES ('t1', ?)", _GONE)
    rows.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t1', ?)", _STANDING)

    with Reader.open(rows.path) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(text)

    told = f"checkpoint {_GONE} of thread t1 was pruned; the next one that still stands is {_STANDING}."
    assert str(refusal.value) == told


@pytest.mark.parametrize("text", ["775", "never-was", f"other:{_GONE}"])
def test_what_never_stood_is_not_called_pruned(rows: Rows, text: str) -> None:
    rows.thread()
    rows.execute("INSERT INTO pruned (thread_id, checkpoint_id) VALUES ('t1', ?)", _GONE)

    with Reader.open(rows.path) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(text)

    assert "pruned" not in str(refusal.value)


def test_a_database_of_before_there_was_pruning_is_read_all_the_same(rows: Rows) -> None:
    rows.thread()
    rows.execute("DROP TABLE pruned")

    with Reader.open(rows.path) as reader, pytest.raises(UnknownId, match="no thread, checkpoint or call"):
        reader.resolve("never-was")
