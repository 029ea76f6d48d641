import pytest

from graph_agent.cli.views.table import format_fields, format_table, id_shortener


def test_cells_are_made_safe_and_columns_stay_aligned() -> None:
    lines = list(format_table(("A", "B"), [("x\x1b", "1"), ("日本", "2")]))

    assert lines == ["A      B", "x\\x1b  1", "日本   2"]


def test_labels_without_a_value_are_left_out() -> None:
    assert list(format_fields({"long label": "", "a": "1", "bcd": "two\nlines"})) == ["a    1", "bcd  two\\nlines"]


def test_only_a_long_id_is_shortened_and_only_while_it_stays_the_only_one() -> None:
    ids = ["fix-the-login", "0123456789abcdef-00000001", "0123456789abcdef-00000002", "fedcba9876543210-00000002"]

    assert [id_shortener(ids)(identifier) for identifier in ids] == [
        "fix-the-login",
        "00000001",
        "0123456789abcdef-00000002",
        "fedcba9876543210-00000002",
    ]


def test_on_a_narrow_screen_the_columns_before_the_last_go_until_that_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("t1", "running", "1 s ago", "1", "a title that is long")]
    shown = []
    for columns in (60, 30, 22, 12):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown.append(list(format_table(("THREAD", "STATUS", "UPDATED", "TURNS", "TITLE"), rows))[1])

    assert shown == [
        "t1      running  1 s ago  1      a title that is long",
        "t1      running  a title that…",
        "t1      running  a ti…",
        "t1      running  …",
    ]


def test_of_a_place_only_the_end_is_shown_where_the_last_column_needs_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("t1", "/home/me/work/日本/project", "a title that is long"), ("t2", "/home/me/shop", "short")]
    monkeypatch.setenv("COLUMNS", "40")

    lines = list(format_table(("THREAD", "WORKSPACE", "TITLE"), rows, place="WORKSPACE"))

    assert lines == [
        "THREAD  WORKSPACE   TITLE",
        "t1      …/project   a title that is long",
        "t2      …e/me/shop  short",
    ]


def test_a_place_is_shown_whole_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    lines = list(format_table(("WORKSPACE", "TITLE"), [("/home/me/work/project", "a title")], place="WORKSPACE"))

    assert lines == ["WORKSPACE              TITLE", "/home/me/work/project  a title"]
