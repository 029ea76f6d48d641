import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tools.base import ToolResult
from tools.file_ops import grep_engine
from tools.file_ops.grep import GrepTool

EXAMPLE_CALLS = {
    "grep": ExampleCalls({"pattern": "her.", "context": 1}, {"pattern": "foo("}),
}


@pytest.fixture(params=["with ripgrep", "without"])
def around(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ToolEnvironment:
    monkeypatch.setattr(grep_engine, "_MIN_FILES", 0)
    if request.param == "without":
        monkeypatch.setattr(grep_engine, "find_ripgrep", lambda: None)
    return ToolEnvironment(tmp_path)


def _write(around: ToolEnvironment, files: dict[str, bytes]) -> None:
    for age, (name, data) in enumerate(files.items()):
        file = around.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (1_000_000 - age, 1_000_000 - age))


_ONLY_MULTILINE = "\n[a pattern that contains a line ending needs multiline=true to match]"


async def _grep(around: ToolEnvironment, pattern: str, **arguments: Any) -> ToolResult:
    return await GrepTool().execute(pattern=pattern, tool_context=around.context(), **arguments)


_TEXTS = {"a.txt": b"x -n y\n->z\n--flag\n", "b.txt": b"foo(bar\nfoo.bar\n"}
_HITS = {"new.txt": b"hit\nhit\n", "old.txt": b"hit\n", "none.txt": b"miss\n"}
_LINES = {"a.txt": b"1\nhit 2\n3\nhit 4\n5\n6\n7\nhit 8\n"}
_TREE = {"src/a.py": b"hit\n", "b.txt": b"hit\n", "out/c.py": b"hit\n", ".gitignore": b"out/\n", ".d.py": b"hit"}
_BINARY = {"a.bin": b"\0\1hit\xff\n", "b.txt": b"hit\n"}
_LEFT_OUT = "src/a.py:1:hit\n[left out: 2 hidden, 1 git-ignored]"


@pytest.mark.parametrize(
    ("files", "pattern", "arguments", "output"),
    [
        (_TEXTS, "-n", {}, "a.txt:1:x -n y"),
        (_TEXTS, "->", {}, "a.txt:2:->z"),
        (_TEXTS, "--flag", {}, "a.txt:3:--flag"),
        (_TEXTS, "-e", {}, "No match for '-e' in 2 files."),
        (_TEXTS, "foo(", {"literal": True}, "b.txt:1:foo(bar"),
        (_HITS, "hit", {"output_mode": "files_with_matches"}, "new.txt\nold.txt"),
        (_HITS, "hit", {"output_mode": "count"}, "new.txt:2\nold.txt:1"),
        (
            _LINES,
            "hit",
            {"context": 1},
            "a.txt-1-1\na.txt:2:hit 2\na.txt-3-3\na.txt:4:hit 4\na.txt-5-5\n--\na.txt-7-7\na.txt:8:hit 8",
        ),
        ({"a.txt": b"x end\r\ny end\rz end\n"}, "end$", {}, "a.txt:1:x end\na.txt:2:y end\na.txt:3:z end"),
        (_TREE, "hit", {"include": "*.py"}, _LEFT_OUT),
        (_TREE, "hit", {"include": "**/*.py"}, _LEFT_OUT),
        (_TREE, "hit", {"include": "src/*.{py,pyi}"}, _LEFT_OUT),
        ({".env": b"hit\n"}, "hit", {"include": ".env"}, ".env:1:hit"),
        ({".env": b"hit\n"}, "hit", {"path": ".env"}, ".env:1:hit"),
        (_BINARY, "hit", {}, "a.bin: binary file matches\nb.txt:1:hit\n[1 binary]"),
        (_BINARY, "other", {}, "No match for 'other' in 2 files."),
    ],
)
async def test_what_is_found_and_how_it_is_shown(
    around: ToolEnvironment, files: dict[str, bytes], pattern: str, arguments: dict[str, Any], output: str
) -> None:
    _write(around, files)

    assert (await _grep(around, pattern, **arguments)).output == output


@pytest.mark.parametrize(
    ("pattern", "path", "kind"),
    [
        *((pattern, ".", "validation") for pattern in ("foo(", "[z-a]", "", "(", "a**")),
        ("x", "none", "not_found"),
        ("x", "/proc", "permission"),
        ("x", "/sys/kernel", "permission"),
    ],
)
async def test_what_cannot_be_searched_is_an_error(
    around: ToolEnvironment, pattern: str, path: str, kind: str
) -> None:
    _write(around, _TEXTS)
    cancelled = around.context()
    cancelled.cancellation.set()

    assert (await _grep(around, pattern, path=path)).metadata == {"error_type": kind}
    stopped = await GrepTool().execute(pattern="foo", tool_context=cancelled)
    assert stopped.metadata == {"error_type": "cancelled"}


async def test_newest_files_come_first_and_the_total_is_said(around: ToolEnvironment) -> None:
    _write(around, {"new.txt": b"hit\nhit\n", "old.txt": b"hit\n", ".hidden": b"hit\n"})

    assert await _grep(around, "hit", limit=2) == ToolResult(
        "new.txt:1:hit\nnew.txt:2:hit\n"
        "[the first 2 of 3 matches, newest files first; narrow the search; left out: 1 hidden]",
        display="hit: 3 in 2 files",
        metadata={"matches": 3, "files": 2, "withheld": 0},
    )


async def test_a_pattern_spans_lines_only_when_asked(around: ToolEnvironment) -> None:
    _write(around, {"a.txt": b"one\r\ntwo\r\nthree\r\n"})

    assert (await _grep(around, r"one\s+two")).metadata["matches"] == 0
    assert (await _grep(around, r"one.two$", multiline=True)).output == "a.txt:1:one\na.txt:2:two"
    assert [(await _grep(around, end)).output for end in ("e\nt", r"e\nt", r"e\\nt")] == [
        f"No match for '{shown}' in 1 file.{note}"
        for shown, note in (("e\\nt", _ONLY_MULTILINE), (r"e\nt", _ONLY_MULTILINE), (r"e\\nt", ""))
    ]


@pytest.mark.parametrize(
    ("data", "pattern"),
    [
        ("caf\u00e9 hit".encode("latin-1"), "caf\u00e9 hit"),
        ("caf\u00e9 hit".encode("utf-16"), "caf\u00e9 hit"),
        (b"\xef\xbb\xbfhit first", "^hit"),
        ("中文内容很多 hit 中文内容".encode("gbk"), "hit 中文"),
    ],
)
async def test_text_in_other_encodings_is_searched_as_it_reads(
    around: ToolEnvironment, data: bytes, pattern: str
) -> None:
    _write(around, {"a.txt": data})

    assert (await _grep(around, pattern)).metadata["matches"] == 1


async def test_a_huge_line_is_cut_around_the_match_and_other_files_still_come(around: ToolEnvironment) -> None:
    _write(around, {"min.js": (b"x" * 1620 + b"stats") * 400, "b.txt": b"stats\n"})

    cut, other, note = (await _grep(around, "stats")).output.splitlines()

    assert ("xstatsx" in cut, len(cut) < 600, cut[-1], other) == (True, True, "…", "b.txt:1:stats")
    assert note == "[1 long lines shortened]"


async def test_what_a_rule_hides_is_not_shown_and_pipes_and_links_are_not_read(
    around: ToolEnvironment, tmp_path: Path
) -> None:
    _write(around, {"secret.txt": b"hit\n", "open.txt": b"hit\n"})
    hidden = around.workspace / "secret.txt"
    (around.workspace / "link").symlink_to("secret.txt")
    (tmp_path / "outside.txt").write_text("hit")
    (around.workspace / "away.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(around.workspace / "pipe")
    context = replace(around.context(), may_read=lambda path: path != hidden)

    everywhere = await GrepTool().execute(pattern="hit", tool_context=context)
    by_link = await GrepTool().execute(pattern="hit", path="link", tool_context=context)
    by_name = await _grep(around, "hit", path="pipe")

    assert everywhere.output == "open.txt:1:hit\n[left out: 2 withheld by a rule]"
    assert by_link.output == "No match for 'hit' in 0 files.\n[left out: 1 withheld by a rule]"
    assert by_name.error == "'pipe' is a named pipe; only regular files can be used."


_THREE = {"new.txt": b"hit\nhit\nhit\n", "old.txt": b"hit\nhit\n", "oldest.txt": b"hit\n"}
_AT_LEAST = "the first 2 of at least 4 matches, newest files first; narrow the search"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({}, "new.txt:1:hit\nnew.txt:2:hit\nnew.txt:3:hit\nold.txt:1:hit\n[{stopped}]"),
        ({"limit": 2}, f"new.txt:1:hit\nnew.txt:2:hit\n[{{stopped}}; {_AT_LEAST}]"),
        ({"output_mode": "count"}, "new.txt:3\nold.txt:1+\n[{stopped}]"),
        ({"output_mode": "files_with_matches"}, "new.txt\nold.txt\n[{stopped}]"),
        (
            {"multiline": True, "pattern": "h.t"},
            "new.txt:1:hit\nnew.txt:2:hit\nnew.txt:3:hit\nold.txt:1:hit\n[{stopped}]",
        ),
    ],
)
async def test_a_search_that_is_stopped_shows_what_it_has_found(
    around: ToolEnvironment, arguments: dict[str, Any], output: str
) -> None:
    _write(around, _THREE)
    tool = GrepTool()
    tool.max_matches = 4

    result = await tool.execute(**{"pattern": "hit", "tool_context": around.context(), **arguments})

    stopped = "stopped after 4 matches; there may be more matches, narrow the search"
    assert (result.error, result.output) == (None, output.format(stopped=stopped))


_RUNAWAY = r"(a|aa|a.)+\1(b|c)+d\2$"


@pytest.mark.parametrize("has_match", [True, False])
async def test_matches_before_the_time_is_up_are_shown(
    around: ToolEnvironment, has_match: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_engine, "_SECONDS", 0.2)
    first = b"aabdb\n" if has_match else b"-\n"
    _write(around, {"a.txt": first + (b"a" * 5_000 + b"c\n") * 50})

    result = await _grep(around, _RUNAWAY)

    if has_match:
        assert result.output.startswith("a.txt:1:aabdb\n[")
        assert "was stopped after 0.2 seconds; there may be more matches" in result.output
    else:
        assert "nested repetitions" in (result.error or "")
