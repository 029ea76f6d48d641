from pathlib import Path

from graph_agent.toolbox.background_shells import read_spool_end


def test_the_end_of_a_long_output_is_kept_without_half_characters(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_text("é" * 3000 + "x")

    assert read_spool_end(spool) == "é" * 1999 + "x"


def test_nothing_that_moves_a_cursor_is_kept(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(b"10%\r\x1b[31m20%\x1b[0m\nhalf\n")

    assert read_spool_end(spool) == "20%\nhalf"


def test_a_call_that_wrote_nothing_has_no_output(tmp_path: Path) -> None:
    assert read_spool_end(tmp_path / "none") == ""
