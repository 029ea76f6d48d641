import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tools.base import ToolResult
from tools.shell_ops.output import (
    CommandEnd,
    ShellReport,
    clean_output,
    format_result,
    incomplete_tail_length,
    open_spool,
    parse_report,
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b" 10%\r 50%\r100%\n", "100%\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"50%\r", "50%"),
        (b"ok\xf0\n", "ok\ufffd\n"),
        (b"a\x00b\x07c\td", "abc\td"),
        ("é→".encode(), "é→"),
    ],
)
def test_output_is_made_readable(raw: bytes, text: str) -> None:
    assert clean_output(raw) == text


@pytest.mark.parametrize(
    ("raw", "held_back"),
    [
        (b"abc", 0),
        (b"", 0),
        ("é".encode(), 0),
        ("é".encode()[:1], 1),
        ("→".encode()[:2], 2),
        (b"\xf0\x9f\x98", 3),
        (b"\x80" * 9, 0),
    ],
)
def test_an_incomplete_character_is_recognised(raw: bytes, held_back: int) -> None:
    assert incomplete_tail_length(raw) == held_back


def test_output_is_followed_in_pieces_of_whole_characters_and_of_much_only_the_newest() -> None:
    reported: list[str] = []
    raw = "aé".encode()

    with open_spool(None) as spool:
        for piece in (raw[:2], raw[2:] + b"\n", b"", b"x" * 200_000 + b"end"):
            os.write(spool.sink, piece)
            spool.follow(reported.append)

        assert (spool.size, spool.read(1, 2), os.fstat(spool.sink).st_nlink) == (200_007, "é".encode(), 0)
    assert (reported[:2], [(len(text), text[-3:]) for text in reported[2:]]) == (["a", "é\n"], [(64 * 1024, "end")])


def test_a_spool_is_private_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "s"
    mask = os.umask(0)
    try:
        for _ in range(2):
            with open_spool(path) as spool:
                os.write(spool.sink, b"x")
    finally:
        os.umask(mask)

    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"xx", 0o600)


def _told(around: ToolEnvironment, raw: bytes, **ending: Any) -> ToolResult:
    end = CommandEnd(0, None, timeout_s=5, seconds=0.12345, folder=None, outside=None, start=Path("/w"))
    with open_spool(None) as spool:
        os.write(spool.sink, raw)
        return format_result(replace(end, **ending), spool, around.context())


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ({}, "exit code 0"),
        ({"code": 1}, "exit code 1"),
        ({"code": -15}, "killed by signal SIGTERM"),
        ({"code": 137}, "exit code 137, which usually means signal SIGKILL"),
        ({"code": 255}, "exit code 255"),
        (
            {"code": -15, "stopped": "timeout"},
            "stopped after 5 seconds, its time limit; what it did until then is not undone",
        ),
    ],
)
def test_every_kind_of_end_has_its_message(tmp_path: Path, ending: dict[str, Any], status: str) -> None:
    result = _told(ToolEnvironment(tmp_path), b"", **ending)

    assert result.output == f"(no output)\n[{status}]"


@pytest.mark.parametrize(
    ("raw", "report"),
    [
        (b"", ShellReport()),
        (b"7\n", ShellReport(7)),
        (b"E0|0||/w\n", ShellReport(0, "/w", (0,))),
        (b"E0|1 0|7|/a|b\n", ShellReport(0, "/a|b", (1, 0), has_background=True)),
        (b"F2|x\ny\0F1|z\0E3|3||/w\n", ShellReport(3, "/w", (3,), (2,), "x\ny")),
        (b"F141 0|\0F1 0|\0", ShellReport(failed=(1, 0))),
        (b"E0", ShellReport()),
        (b"junk\0\xff|\0E", ShellReport()),
    ],
)
def test_what_a_shell_reports_is_read_also_if_it_is_incomplete(raw: bytes, report: ShellReport) -> None:
    assert parse_report(raw) == report


@pytest.mark.parametrize(
    ("raw", "code", "named"),
    [
        (b"a .env\n.git .hg/\n", 0, ".env, .git, .hg"),
        (b"see .env and .git\n", 0, ""),
        (b"cat: .env: Permission denied\n", 1, ".env"),
        (b".envrc x.git .hg-2\n", 1, ""),
    ],
)
def test_placeholders_are_explained_where_they_are_confusing(
    tmp_path: Path, raw: bytes, code: int, named: str
) -> None:
    output = _told(ToolEnvironment(tmp_path), raw, code=code, placeholders=(".env", ".git", ".hg")).output

    told = f"\n[these do not exist; the sandbox only shows them while a command runs: {named}]" if named else ""
    assert output == f"{raw.decode()}[exit code {code}]{told}"


def test_a_new_folder_is_named_and_in_the_metadata(tmp_path: Path) -> None:
    result = _told(ToolEnvironment(tmp_path), b"out\n", folder=Path("/w/sub"))

    assert result == ToolResult(
        "out\n[exit code 0]\n[working directory is now /w/sub]",
        display="exit code 0",
        metadata={"output_bytes": 4, "exit_code": 0, "seconds": 0.123, "cwd": "/w/sub"},
    )


def test_a_very_large_output_shows_both_ends(tmp_path: Path) -> None:
    around = ToolEnvironment(tmp_path)

    result = _told(around, b"first\n" + b"x" * 79 + b"\n" * 2_000_000 + b"last\n")

    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n[exit code 0]")
    assert len(result.output) < 31_000
    assert len(around.blobs.get(result.metadata["blob"])) == result.metadata["output_bytes"]
