import os
import time
from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tools.file_ops import grep_engine
from tools.file_ops.grep import GrepTool
from tools.file_ops.grep_engine import LineSearch, Prefilter, RequiredTexts, SearchHit, required_texts, split_lines
from tools.patterns import compile_pattern
from tools.walk import FoundFolder, Walk

_MANY = 150
_TEXT = "a line\nthe needle\n"


@pytest.fixture(params=["asked at the end", "asked meanwhile"])
def around(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ToolEnvironment:
    if request.param == "asked meanwhile":
        monkeypatch.setattr(grep_engine, "_MIN_FILES_EARLY", 1)
    around = ToolEnvironment(tmp_path)
    for number in range(_MANY):
        folder = around.workspace / f"-d{number % 7}"
        folder.mkdir(exist_ok=True)
        (folder / f"plain{number}.txt").write_text("a line\n")
    return around


async def _grep(around: ToolEnvironment, pattern: str, include: str | None = None) -> list[str]:
    tool = GrepTool(workspace=around.workspace)
    found = await tool.execute(
        pattern=pattern, output_mode="files_with_matches", tool_context=around.context(), include=include
    )
    return sorted(found.output.splitlines())


@pytest.mark.parametrize("pattern", ["needle", "need(le|ing)$", "(?i)NEEDLE", "absent|needle", r"\bneedl\S"])
async def test_among_many_files_those_are_found_that_match_and_no_left_out_ones(
    around: ToolEnvironment, pattern: str
) -> None:
    for name in ("-d1/one.txt", "-d2/a b\n.txt", ".hidden/three.txt", "made/four.txt", "-d3/.five"):
        path = around.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_TEXT)
    (around.workspace / ".gitignore").write_text("made/\n")
    (around.workspace / "-d4" / "wide.txt").write_bytes(b"\xff\xfe" + "the needle\n".encode("utf-16-le"))

    assert await _grep(around, pattern) == [
        "-d1/one.txt", "-d2/$'a b\\n.txt'", "-d4/wide.txt", "[left out: 3 hidden, 1 git-ignored]",
    ]  # fmt: skip


async def test_an_include_narrows_many_files_too(around: ToolEnvironment) -> None:
    for number in range(_MANY):
        (around.workspace / f"more{number}.md").write_text("a line\n")
    (around.workspace / "more5.md").write_text(_TEXT)
    (around.workspace / "-d1" / "one.txt").write_text(_TEXT)

    assert await _grep(around, "needle", include="*.md") == ["more5.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
async def test_a_file_that_may_not_be_read_is_counted_among_many(around: ToolEnvironment) -> None:
    (around.workspace / "closed.txt").write_text(_TEXT)
    (around.workspace / "closed.txt").chmod(0)
    (around.workspace / "open.txt").write_text(_TEXT)

    assert await _grep(around, "needle") == ["[left out: 1 unreadable]", "open.txt"]


def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> Path:
    """A ripgrep that notes the folders it is asked about, each on a line."""
    program, asked = tmp_path / "rg", tmp_path / "asked"
    program.write_text(f'#!/bin/sh\nfor one; do case $one in /*) echo "$one" >> {asked};; esac; done\n{end}\n')
    program.chmod(0o755)
    monkeypatch.setattr(grep_engine, "find_ripgrep", lambda: str(program))
    return asked


def _until_there(file: Path) -> None:
    deadline = time.monotonic() + 20
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_program_searches_the_first_folders_while_others_are_found_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _program(tmp_path, monkeypatch, "exit 1")
    names = [f"file{number}" for number in range(2_000)]
    folders = [FoundFolder(f"/{name}", f"{name}/", names, []) for name in "abc"]

    with Prefilter(RequiredTexts(("needle",)), ToolEnvironment(tmp_path).context(), is_all=True) as narrowed:
        narrowed.add_folder(folders[0])
        _until_there(asked)
        for folder in folders[1:]:
            narrowed.add_folder(folder)
        found = narrowed.candidates(Walk(folders=folders))

    assert (found, sorted(asked.read_text().split())) == ([], ["/a", "/b", "/c"])


def test_a_search_that_is_given_up_waits_for_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _program(tmp_path, monkeypatch, "exec sleep 50")
    began = time.monotonic()

    with Prefilter(RequiredTexts(("needle",)), ToolEnvironment(tmp_path).context(), is_all=True) as narrowed:
        narrowed.add_folder(FoundFolder("/a", "a/", [f"file{number}" for number in range(2_000)], []))
        _until_there(asked)

    assert time.monotonic() - began < 25


def test_a_line_matches_once_and_a_spanning_match_knows_its_lines() -> None:
    lines = split_lines("aa b\r\nb\r\ra\x0c\n")
    by_line = LineSearch(compile_pattern("a"), RequiredTexts(("a",)), is_multiline=False)
    spanning = LineSearch(compile_pattern("b\nb"), RequiredTexts(), is_multiline=True)

    assert lines == ["aa b", "b", "", "a\x0c"]
    assert by_line.find(lines, 5) == ([SearchHit(0, 0, 0), SearchHit(3, 3, 0)], 2)
    assert by_line.find(lines, 1) == ([SearchHit(0, 0, 0)], 2)
    assert spanning.find(lines, 5) == ([SearchHit(0, 1, 3)], 1)


@pytest.mark.parametrize("is_multiline", [False, True])
def test_a_search_ends_at_its_number_of_matches_with_those_it_has(is_multiline: bool) -> None:
    search = LineSearch(compile_pattern("a"), RequiredTexts(("a",)), is_multiline=is_multiline, max_matches=5)

    first, second = search.find(["a"] * 3, 10), search.find(["b", "a", "a", "a"], 10)

    assert (len(first.hits), first.total) == (3, 3)
    assert ([hit.first for hit in second.hits], second.total) == ([1, 2], 2)
    assert search.stopped == "stopped after 5 matches"


def test_a_pattern_that_runs_away_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_engine, "_SECONDS", 0.2)
    search = LineSearch(compile_pattern(r"(a|aa|a.)+\1(b|c)+d\2$"), RequiredTexts(), is_multiline=False)

    found = search.find(["ad", "a" * 5_000 + "c"] * 50, 10)

    assert (found.total, "was stopped after 0.2 seconds" in search.stopped) == (0, True)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("hello", ["hello"]),
        (r"def \w+_name\(", ["_name"]),
        ("colou?r", ["colo"]),
        ("ab*c", ["a"]),
        ("ab+", ["ab"]),
        ("a{0,2}bc", ["bc"]),
        ("(maybe)?sure", ["sure"]),
        ("[abc]def", ["def"]),
        ("one|two", ["one", "two"]),
        ("one|two|", []),
        ("need(le|ing) on", ["need"]),
        ("(?:a|b)cd(?=efgh)", ["cd"]),
        ("(?P<name>longer)cd", ["cd"]),
        ("a}(bcd)?", ["a"]),
        ("[[:alpha:]foo]", []),
        ("(?s)hit", []),
        ("a(?#longer)b", []),
        (r"\x41bc", []),
        (r"\u0041bc", []),
        (r"(a)\1b", []),
        (r"\p{L}abc", []),
        ("é", []),
    ],
)
def test_only_what_every_match_must_hold_is_taken_for_certain(pattern: str, texts: list[str]) -> None:
    assert required_texts(pattern, is_literal=False) == RequiredTexts(tuple(texts))


def test_what_is_certain_with_ignored_case_and_in_a_literal() -> None:
    ignoring = required_texts("(?i)Needle|skill", is_literal=False)
    literal = required_texts("é(x|y)\nlonger than that", is_literal=True)

    # Some letters have a further case beyond ASCII.
    assert ignoring == RequiredTexts(("Needle", "ll"), ignores_case=True)
    assert literal == RequiredTexts(("longer than that",))
    known = RequiredTexts(("one", "two"))
    assert [known.may_match("a two"), known.may_match("a three"), RequiredTexts().may_match("a")] == [
        True,
        False,
        True,
    ]
