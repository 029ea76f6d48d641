import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UnknownId
from tests.fakes.database_rows import Rows

_GONE, _STANDING = "1f1eac6a-7522-6fcc-8002-13ceac9a1775", "1f1eac6a-9000-6fcc-8002-13ceac9a1777"


@pytest.mark.parametrize("text", [_GONE, "1f1eac6a-75", "9a1775", f"t1:{_GONE}"])
def test_an_id_that_was_pruned_is_answered_with_the_next_one_that_stands(rows: Rows, text: str) -> None:
    rows.thread()
    rows.execute("INSERT INTO pruned_checkpoints (thread_id, checkpoint_id) VALUES ('t1', ?)", _GONE)
    rows.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t1', ?)", _STANDING)

    with read_database(rows.path) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(text)

    assert (
        str(refusal.value)
        == f"Checkpoint {_GONE} of thread t1 was pruned. The next one that exists is {_STANDING}."
    )


@pytest.mark.parametrize("text", ["775", "never-was", f"other:{_GONE}"])
def test_what_never_stood_is_not_called_pruned(rows: Rows, text: str) -> None:
    rows.thread()
    rows.execute("INSERT INTO pruned_checkpoints (thread_id, checkpoint_id) VALUES ('t1', ?)", _GONE)

    with read_database(rows.path) as reader, pytest.raises(UnknownId) as refusal:
        reader.resolve(text)

    assert "pruned" not in str(refusal.value)
