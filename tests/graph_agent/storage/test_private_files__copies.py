"""Copies that have their name only once they are whole."""

from pathlib import Path

import pytest

from graph_agent.storage.private_files import draft_file


def test_a_copy_that_fails_halfway_leaves_nothing_and_what_stood_there_stays(tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.write_text("the one before")

    def fill_up(draft: Path) -> None:
        draft.write_text("half")
        draft.with_name(f"{draft.name}-journal").touch()
        raise OSError("full")

    with pytest.raises(OSError, match="full"), draft_file(target) as draft:
        fill_up(draft)

    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("copy", "the one before")]
