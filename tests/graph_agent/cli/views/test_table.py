import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from graph_agent.cli.views.table import (
    format_fields,
    format_table,
    format_time,
    id_shortener,
    line_width,
    print_json,
    print_json_lists,
    print_lines,
    text_width,
    truncate,
    wrap_line,
)
from graph_agent.errors import UnknownId
from tests.fakes.database_rows import Rows, record_of


def test_cells_are_escaped_and_columns_aligned() -> None:
    lines = list(format_table(("A", "B"), [("x\x1b", "1"), ("日本", "2")]))

    assert lines == ["A      B", "x\\x1b  1", "日本   2"]


def test_labels_without_a_value_are_left_out() -> None:
    assert list(format_fields({"long label": "", "a": "1", "bcd": "two\nlines"})) == ["a    1", "bcd  two\\nlines"]


def test_only_long_unique_ids_are_shortened() -> None:
    ids = ["fix-the-login", "0123456789abcdef-00000001", "0123456789abcdef-00000002", "fedcba9876543210-00000002"]

    assert [id_shortener(ids)(identifier) for identifier in ids] == [
        "fix-the-login",
        "00000001",
        "0123456789abcdef-00000002",
        "fedcba9876543210-00000002",
    ]


def test_on_a_narrow_screen_columns_before_the_last_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("t1", "idle", "1 s ago", "1", "a title that is long")]
    shown = []
    for columns in (60, 30, 22, 12):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown.append(list(format_table(("THREAD", "STATUS", "UPDATED", "TURNS", "TITLE"), rows))[1])

    assert shown == [
        "t1      idle    1 s ago  1      a title that is long",
        "t1      idle    a title that …",
        "t1      idle    a tit…",
        "t1      idle    …",
    ]


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ("", []),
        ("40", []),
        ("39", ["… shortened; in full: `graph-agent threads show THREAD`"]),
        ("20", ["… shortened; in full: `graph-agent threads show THREAD`"]),
    ],
)
def test_below_a_table_that_is_cut_is_said_what_shows_all(
    monkeypatch: pytest.MonkeyPatch, columns: str, more: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("graph_agent.config.paths.own_command", lambda: "graph-agent")
    rows = [("t1", "idle", "a title of 25 characters")]

    lines = list(format_table(("THREAD", "STATUS", "TITLE"), rows, whole="graph-agent threads show THREAD"))

    assert lines[2:] == more


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            "40",
            [
                "THREAD  WORKSPACE   TITLE",
                "t1      …/project   a title that is long",
                "t2      …e/me/shop  short",
            ],
        ),
        (
            "80",
            [
                "THREAD  WORKSPACE                   TITLE",
                "t1      /home/me/work/日本/project  a title that is long",
                "t2      /home/me/shop               short",
            ],
        ),
    ],
)
def test_paths_are_cut_at_the_left_only_if_the_last_column_needs_room(
    monkeypatch: pytest.MonkeyPatch, columns: str, lines: list[str]
) -> None:
    rows = [("t1", "/home/me/work/日本/project", "a title that is long"), ("t2", "/home/me/shop", "short")]
    monkeypatch.setenv("COLUMNS", columns)

    assert list(format_table(("THREAD", "WORKSPACE", "TITLE"), rows, path_column="WORKSPACE")) == lines


_ROOT = Path(__file__).parents[4]


_FAMILY, _FLAGS, _THUMB = "👨\u200d👩\u200d👧", "🇩🇪🇫🇷", "👍🏽!"


@pytest.mark.parametrize(
    ("text", "width"),
    [
        *(("abc", 3), ("日本", 4), ("e\u0301", 1), ("ﾊﾛｰ", 3), (_FAMILY, 2), (_FLAGS, 4), (_THUMB, 3)),
        *(("❤\ufe0f", 2), ("1\ufe0f\u20e3", 2)),
    ],
)
def test_width_is_counted_in_columns_and_characters_are_never_cut_apart(text: str, width: int) -> None:
    shown = (text_width(text), truncate(f"ab{text}", 2 + width), truncate(f"{text}abc", 1 + width))

    assert shown == (width, f"ab{text}", f"{text}…")


@pytest.mark.parametrize(
    ("text", "width", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("ab", 0, "")]
)
def test_long_text_is_cut_with_an_ellipsis(text: str, width: int, shown: str) -> None:
    assert truncate(text, width) == shown


def test_json_is_ascii_and_holds_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "日\u202e\x7f\x1b"})

    assert capsys.readouterr().out == '{\n  "text": "\\u65e5\\u202e\\u007f\\u001b"\n}\n'


@pytest.mark.parametrize("values", [[], [{"text": "a\n\x7f", "list": [1, {}]}, "two", []]])
def test_a_list_printed_item_by_item_looks_like_print_json(
    values: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    print_json({"of": [1], "calls": values, "more": []})
    whole = capsys.readouterr().out

    print_json_lists({"of": [1]}, {"calls": iter(values), "more": []})

    assert capsys.readouterr().out == whole


def test_nothing_is_printed_if_a_list_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Iterator[int]:
        yield from ()
        raise UnknownId("there is no such thread")

    with pytest.raises(UnknownId):
        print_json_lists({"of": 1}, {"calls": [1], "more": fails()})

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("0", None), ("wide", None), ("", None)])
def test_the_width_is_that_of_columns_or_unlimited_in_a_pipe(
    columns: str, width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert line_width() == width


def test_text_that_is_not_a_time_is_unchanged() -> None:
    assert [format_time(None), format_time("then"), len(format_time("2026-11-28T10:00:00.000Z"))] == [
        "",
        "then",
        19,
    ]


@pytest.mark.slow
def test_statuses_are_coloured_on_a_terminal_that_takes_colour(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("interrupted"))

    def shown(**environment: str) -> str:
        done: Any = pexpect.run(
            shlex.join(
                [sys.executable, "-m", "tests.fakes.light_program", "threads", "list", "--db", str(rows.path)]
            ),
            cwd=str(_ROOT),
            env={**os.environ, "TERM": "xterm", **environment},
            withexitstatus=True,
        )
        assert done[1] == 0, done
        return str(done[0].decode())

    assert "\x1b[31minterrupted\x1b[0m" in shown(NO_COLOR="")
    assert "\x1b" not in shown(NO_COLOR="1")
    assert "\x1b" not in shown(TERM="dumb")


def test_an_ascii_stdout_gets_escapes(rows: Rows) -> None:
    rows.thread(title="日本")

    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.light_program", "threads", "list", "--db", rows.path],
        cwd=_ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )

    assert b"\\u65e5\\u672c" in done.stdout


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("plain words here", ["plain words", "here"]),
        ("  words indented", ["  words", "  indented"]),
        ("a b  c d e f", ["a b  c d e", "     f"]),
        ("a long column  b c", ["a long", "column  b c"]),
        ("in /abc/de/fghijk/l", ["in /abc/de/", "fghijk/l"]),
        ("at  /abc/defgh/i", ["at  /abc/", "    defgh/i"]),
        ("took (0.1 s) a", ["took", "(0.1 s) a"]),
        ("at http://a/b/c", ["at", "http://a/b/c"]),
    ],
)
def test_a_line_is_folded_below_its_last_column_where_that_leaves_room(line: str, lines: list[str]) -> None:
    assert wrap_line(line, 11) == lines


def test_the_lines_of_a_text_are_folded_one_by_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    print_lines(['{\n  "type": "object",\n  "description": "what it is for, in two lines"\n}'])

    assert capsys.readouterr().out == (
        '{\n  "type": "object",\n  "description": "what it is for, in two\n  lines"\n}\n'
    )
