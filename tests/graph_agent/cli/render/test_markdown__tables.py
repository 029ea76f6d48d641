import pytest
from rich.console import Console

from graph_agent.cli.render.markdown import is_delimiter, table_lines

_ROWS = ["| name | count |", "|:--|--:|", "| 日本語 | 12 |", "| a \\| b | 3 | extra |"]


def _shown(rows: list[str], width: int) -> list[str]:
    return [line.plain for line in table_lines(rows, Console(width=width), width)]


def test_columns_are_aligned_by_cells_and_none_is_dropped() -> None:
    assert _shown(_ROWS, 60) == [
        "name     count",
        "──────────────────────",
        "日本語      12",
        "a | b        3   extra",
    ]


def test_a_cell_is_folded_where_the_table_is_too_wide() -> None:
    shown = _shown(["| a | b |", "|---|---|", f"| {'word ' * 12}| {'x' * 30} |"], 30)

    assert (max(map(len, shown)) <= 30, "".join(shown).count("word"), "".join(shown).count("x")) == (True, 12, 30)


def test_a_table_without_room_for_its_columns_is_shown_as_written() -> None:
    rows = ["|a|b|c|d|e|f|g|h|", "|-|-|-|-|-|-|-|-|"]

    assert _shown(rows, 20) == rows


@pytest.mark.parametrize(
    ("line", "expected"), [("|---|:-:|", True), ("--- | ---", True), ("---", False), ("| a |", False)]
)
def test_a_delimiter_is_told_from_a_rule_and_from_a_row(line: str, expected: bool) -> None:
    assert is_delimiter(line) == expected
