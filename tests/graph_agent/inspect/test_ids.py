import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UnknownId
from graph_agent.inspect import Reader, Target
from tests.fakes.database_rows import Rows, record_of

_CHECKPOINT = "1f1eac6a-7522-6fcc-8002-13ceac9a1775"


@pytest.fixture
def reader(rows: Rows) -> Reader:
    rows.thread("alpha-thread", workspace="/a", updated_at="1")
    rows.thread("beta:thread", workspace="/b", updated_at="2")
    for thread_id in ("alpha-thread", "beta:thread"):
        rows.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES (?, ?)", thread_id, f"shared-{7:06}"
        )
        rows.call(record_of("success", "functions.bash:0"), thread_id)
    rows.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('alpha-thread', ?)", _CHECKPOINT)
    rows.thread("of-a-sub-agent", workspace="/a", updated_at="3", parent_call="call_0123456789")
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id) VALUES ('alpha-thread', 'sub', ?)",
        "subgraph-id",
    )
    rows.call(record_of("success", "call_0123456789"), "alpha-thread")
    return read_database(rows.path)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("alpha-thread", Target("thread", "alpha-thread", "alpha-thread")),
        ("alph", Target("thread", "alpha-thread", "alpha-thread")),
        ("beta:thread", Target("thread", "beta:thread", "beta:thread")),
        (_CHECKPOINT, Target("checkpoint", "alpha-thread", _CHECKPOINT)),
        ("ac9a1775", Target("checkpoint", "alpha-thread", _CHECKPOINT)),
        ("ac9a", Target("checkpoint", "alpha-thread", _CHECKPOINT)),
        ("1f1e", Target("checkpoint", "alpha-thread", _CHECKPOINT)),
        ("call_0123456789", Target("call", "alpha-thread", "call_0123456789")),
        ("6789", Target("call", "alpha-thread", "call_0123456789")),
        ("beta:thread:shared-000007", Target("checkpoint", "beta:thread", "shared-000007")),
        ("alpha-thread:functions.bash:0", Target("call", "alpha-thread", "functions.bash:0")),
        ("beta:thread:functions.bash:0", Target("call", "beta:thread", "functions.bash:0")),
        ("alpha:0007", Target("checkpoint", "alpha-thread", "shared-000007")),
        ("", Target("thread", "beta:thread", "beta:thread")),
    ],
)
def test_an_id_a_part_of_one_and_a_pair_name_their_target(reader: Reader, text: str, target: Target) -> None:
    with reader:
        assert reader.resolve(text) == target


def test_nothing_means_the_newest_thread_of_the_workspace(reader: Reader) -> None:
    with reader:
        assert reader.resolve("", "/a") == Target("thread", "alpha-thread", "alpha-thread")
        with pytest.raises(UnknownId, match="no threads in /nowhere yet"):
            reader.resolve("", "/nowhere")


def test_a_thread_in_which_nothing_was_said_is_the_newest_only_for_want_of_others(rows: Rows) -> None:
    rows.thread("left", updated_at="2")
    with read_database(rows.path) as reader:
        found = [reader.resolve("").id]
        rows.thread("worked", updated_at="1", checkpoint_id="c1")
        found.append(reader.resolve("").id)
        rows.execute(
            "INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('left', 'later', 'me', '3')"
        )
        found.append(reader.resolve("").id)

    assert found == ["left", "worked", "left"]


def test_an_ambiguous_id_lists_the_candidates_in_a_form_that_can_be_typed(reader: Reader, rows: Rows) -> None:
    with reader, pytest.raises(UnknownId) as refusal:
        reader.resolve("functions.bash:0")

    assert str(refusal.value).splitlines() == [
        "'functions.bash:0' matches 2 ids; name one of them:",
        "  call alpha-thread:functions.bash:0",
        "  call beta:thread:functions.bash:0",
    ]
    with read_database(rows.path) as again:
        assert again.resolve("alpha-thread:functions.bash:0").thread_id == "alpha-thread"


@pytest.mark.parametrize("text", ["6fcc", "subgraph-id", "%", "call_%", "CALL_0123456789", "alpha-thread:nothing"])
def test_what_is_no_beginning_or_end_of_an_id_is_unknown(reader: Reader, text: str) -> None:
    with reader, pytest.raises(UnknownId, match="No "):
        reader.resolve(text)


def test_of_a_thread_and_an_id_only_the_id_is_called_unknown(reader: Reader) -> None:
    with reader:
        for text, told in {
            "alpha-thread:zzzz": "No checkpoint or call of thread alpha-thread matches 'zzzz'",
            "beta:thread:zz": "No checkpoint or call of thread beta:thread has the id 'zz'",
            "gamma:zzzz": "No thread, checkpoint or call matches 'gamma:zzzz'",
        }.items():
            with pytest.raises(UnknownId, match=told):
                reader.resolve(text)


def test_parts_shorter_than_four_characters_are_not_guessed(reader: Reader) -> None:
    with reader, pytest.raises(UnknownId, match="needs 4 or more"):
        reader.resolve("775")


def test_only_the_kinds_asked_for_are_looked_at(reader: Reader) -> None:
    with reader:
        with pytest.raises(UnknownId, match="No thread matches"):
            reader.resolve("call_0123456789", kinds=("thread",))
        assert reader.resolve(
            "shared-000007".replace("shared", "alpha-thread:shared"), kinds=("checkpoint",)
        ) == Target("checkpoint", "alpha-thread", "shared-000007")


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
