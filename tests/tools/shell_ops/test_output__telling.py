import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tools.base import ToolResult
from tools.shell_ops.output import CommandEnd, format_result, open_spool

_START = Path("/w")


_OF_SEVERAL = ", that of the last command; earlier ones may have failed"


def _told(around: ToolSurroundings, raw: bytes, command: str = "x", **ending: Any) -> ToolResult:
    values: dict[str, Any] = {
        "code": 0,
        "stopped": None,
        "timeout_s": 5,
        "seconds": 0.12345,
        "folder": None,
        "outside": None,
        "start": _START,
    }
    with open_spool(None) as spool:
        os.write(spool.sink, raw)
        return format_result(command, CommandEnd(**(values | ending)), spool, around.context())


@pytest.mark.parametrize(
    ("command", "ending", "status"),
    [
        ("x", {}, "exit code 0"),
        ("x\n", {"code": 1}, "exit code 1"),
        ("x | y", {}, f"exit code 0{_OF_SEVERAL}"),
        ("x > log 2>&1", {}, "exit code 0"),
        ("x &> log && y <&3", {"code": 1}, "exit code 1"),
        ("x 2>&1 | y", {}, f"exit code 0{_OF_SEVERAL}"),
        ("x && y || z", {}, f"exit code 0{_OF_SEVERAL}"),
        ("x && y &", {}, f"exit code 0{_OF_SEVERAL}"),
        ("x", {"code": -15}, "killed by signal SIGTERM"),
        ("x", {"code": 137}, "exit code 137, which usually means signal SIGKILL"),
        (
            "x; y",
            {"code": 139},
            f"exit code 139, which usually means signal SIGSEGV{_OF_SEVERAL}",
        ),
        ("x", {"code": 255}, "exit code 255"),
        (
            "x",
            {"code": -15, "stopped": "timeout"},
            "stopped after 5 seconds, its time limit; what it did until then stays done",
        ),
    ],
)
def test_every_ending_has_its_words(tmp_path: Path, command: str, ending: dict[str, Any], status: str) -> None:
    result = _told(ToolSurroundings(tmp_path), b"", command, **ending)

    assert result.output == f"(no output)\n[{status}]"


@pytest.mark.parametrize(
    ("raw", "code", "named"),
    [
        (b"a .env\n.git .hg/\n", 0, ".env, .git, .hg"),
        (b"see .env and .git\n", 0, ""),
        (b"cat: .env: Permission denied\n", 1, ".env"),
        (b".envrc x.git .hg-2\n", 1, ""),
    ],
)
def test_names_that_only_the_sandbox_made_are_told_where_they_puzzle(
    tmp_path: Path, raw: bytes, code: int, named: str
) -> None:
    output = _told(ToolSurroundings(tmp_path), raw, code=code, placeholders=(".env", ".git", ".hg")).output

    told = f"\n[these do not exist; the sandbox only shows them while a command runs: {named}]" if named else ""
    assert output == f"{raw.decode()}[exit code {code}]{told}"


def test_a_new_folder_is_named_and_given_to_the_program(tmp_path: Path) -> None:
    result = _told(ToolSurroundings(tmp_path), b"out\n", folder=Path("/w/sub"))

    assert result == ToolResult(
        "out\n[exit code 0]\n[working directory is now /w/sub]",
        display="exit code 0",
        metadata={"output_bytes": 4, "exit_code": 0, "seconds": 0.123, "cwd": "/w/sub"},
    )


def test_an_output_too_large_to_be_cleaned_whole_shows_both_ends(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)

    result = _told(around, b"first\n" + b"x" * 79 + b"\n" * 2_000_000 + b"last\n")

    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n[exit code 0]")
    assert len(result.output) < 31_000
    assert len(around.blobs.get(result.metadata["blob"])) == result.metadata["output_bytes"]
