import os
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from graph_agent.cli.prompts.input_line import TypedHistory


def test_what_was_typed_is_read_again_the_newest_first_and_by_what_reads_such_files(tmp_path: Path) -> None:
    history = TypedHistory(tmp_path / "history")

    for text in ("one", "+two\n\n#three", "four \udcff"):
        history.store_string(text)

    kept = ["four ?", "+two\n\n#three", "one"]
    assert list(history.load_history_strings()) == kept
    assert list(FileHistory(tmp_path / "history").load_history_strings()) == kept


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_plain_file_is_neither_read_nor_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "history")
    history = TypedHistory(tmp_path / "history")

    history.store_string("lost")

    assert list(history.load_history_strings()) == []


def test_of_a_large_file_the_end_is_read_and_garbage_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"\n# then\n" + b"+old line\n" * 300_000 + b"\xff\x00garbage\n")
    history = TypedHistory(file)

    history.store_string("new")

    assert list(history.load_history_strings()) == ["new"]
