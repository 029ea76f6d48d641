import os
from pathlib import Path

import pytest

from graph_agent.config.paths import read_plain_text


def test_the_text_of_a_file_is_read_and_a_link_to_one_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ä\n")
    (tmp_path / "link").symlink_to("file")

    assert [read_plain_text(tmp_path / name) for name in ("file", "link")] == ["ä\n", "ä\n"]


def test_a_pipe_is_refused_at_once_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="it is a pipe, not a file"):
        read_plain_text(tmp_path / "pipe")


def test_bytes_that_are_no_text_are_refused_or_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\xff")

    with pytest.raises(UnicodeDecodeError):
        read_plain_text(tmp_path / "file")
    assert read_plain_text(tmp_path / "file", errors="replace") == "a\N{REPLACEMENT CHARACTER}"
