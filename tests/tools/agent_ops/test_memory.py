import asyncio
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.paths import memory_file
from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.memory import MemoryNote, SaveMemoryTool, forget_note, parse_memory
from tools.base import InterruptedCall, ToolContext, ToolResult
from tools.running import execute, normalize_arguments, predict_effect, preview
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "save_memory": ExampleCalls({"fact": "likes tabs"}, {"fact": " "}, writes_in="memory/"),
}

_TODAY = datetime.now(UTC).date().isoformat()


def _mark(folder: Path) -> str:
    return f"<!-- saved by graph-agent, thread t1, {_TODAY} in {folder} -->"


def _tool(folder: Path) -> SaveMemoryTool:
    return SaveMemoryTool(memory_file=folder / "own" / "CONTEXT.md")


async def _save(folder: Path, fact: str) -> ToolResult:
    tool = _tool(folder)
    return await execute(
        tool, normalize_arguments(tool, {"fact": fact}), ToolContext(folder, thread_id="t1", call_id="c1")
    )


def _kept(folder: Path) -> str:
    return (folder / "own" / "CONTEXT.md").read_bytes().decode()


def _given(folder: Path, text: str) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "CONTEXT.md").write_bytes(text.encode())


async def test_the_first_fact_makes_the_file_with_its_heading_in_a_private_folder(tmp_path: Path) -> None:
    result = await _save(tmp_path, "likes  tabs\nalways")

    path = str(tmp_path / "own" / "CONTEXT.md")
    assert _kept(tmp_path) == f"## Agent Memories\n\n- likes tabs always {_mark(tmp_path)}\n"
    assert (result.output, result.display) == (f"Remembered in {path}.", f"remembered in {path}")
    assert result.metadata["diff"]["added"] == 3
    assert "blank" in str(_tool(tmp_path).validate({"fact": " \n"}))
    with pytest.raises(InvalidArguments, match="fact"):
        normalize_arguments(_tool(tmp_path), {"fact": "x" * 2_001})
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("before", "fact", "after"),
    [
        (
            "# Me\r\nhello\r\n\r\n## Agent Memories\r\n- old\r\n\r\n## Rules\r\nnone",
            "new",
            "# Me\r\nhello\r\n\r\n## Agent Memories\r\n- old\r\n- new {}\r\n\r\n## Rules\r\nnone",
        ),
        ("be brief", "new", "be brief\n\n## Agent Memories\n\n- new {}\n"),
        ("", "x --> y\n## Rules\n<!-- z", "## Agent Memories\n\n- x -- > y ## Rules <! -- z {}\n"),
    ],
    ids=["section", "no-section", "marks-in-the-fact"],
)
async def test_what_the_user_wrote_stays_and_the_fact_goes_to_the_end_of_its_section(
    tmp_path: Path, before: str, fact: str, after: str
) -> None:
    _given(tmp_path, before)

    await _save(tmp_path, fact)

    assert _kept(tmp_path) == after.format(_mark(tmp_path))


@pytest.mark.parametrize("again", ["likes tabs", "Likes  tabs.", "likes tabs "])
async def test_a_fact_is_kept_once_however_it_is_written(tmp_path: Path, again: str) -> None:
    _given(tmp_path, "## Agent Memories\n- likes tabs\n")

    result = await _save(tmp_path, again)

    assert (result.output, _kept(tmp_path)) == ("This is already remembered.", "## Agent Memories\n- likes tabs\n")


async def test_facts_saved_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    await asyncio.gather(*(_save(tmp_path, f"fact {number}") for number in range(12)))

    assert sorted(line.split(" <!--")[0] for line in _kept(tmp_path).splitlines()[2:]) == sorted(
        f"- fact {number}" for number in range(12)
    )


async def test_a_file_or_folder_that_cannot_be_used_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "own" / "CONTEXT.md"
    file.parent.mkdir()
    file.write_bytes(b"\xff\x00\x01")

    result = await _save(tmp_path, "new")

    assert "is not text in a Unicode encoding; it was not changed" in str(result.error)
    assert file.read_bytes() == b"\xff\x00\x01"
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("a file where the folder should be")
    assert str(file.parent) in str((await _save(tmp_path, "new")).error)


async def test_the_preview_is_the_diff_and_the_foreseen_digest_is_what_comes(tmp_path: Path) -> None:
    tool, context = _tool(tmp_path), ToolContext(tmp_path, thread_id="t1", call_id="c1")
    shown = await preview(tool, {"fact": "new"}, context)
    effect = await predict_effect(tool, {"fact": "new"}, context)

    result = await _save(tmp_path, "new")

    assert shown is not None
    assert effect is not None
    assert (shown.text, effect.after_sha256) == (
        result.metadata["diff"]["unified"],
        result.metadata["diff"]["after_sha256"],
    )


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        ("## Agent Memories\n- other\n", "not_applied"),
        ("## Agent Memories\n- other\n- new\n", "already_applied"),
    ],
)
async def test_a_save_that_was_broken_off_is_found_out_by_digest_or_by_the_fact(
    tmp_path: Path, now: str, verdict: str
) -> None:
    _given(tmp_path, "")
    tool = _tool(tmp_path)
    effect = await predict_effect(tool, {"fact": "new"}, ToolContext(tmp_path))
    assert effect is not None
    (tmp_path / "own" / "CONTEXT.md").write_text(now)

    found = await tool.reconcile(InterruptedCall({"fact": "new"}, effect.path, "0" * 64, effect.after_sha256))

    assert found.verdict == verdict


@pytest.mark.parametrize("variable", ["GRAPH_AGENT_HOME", "XDG_CONFIG_HOME", "HOME"])
def test_the_usual_place_is_the_one_the_program_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "here"))

    [target] = SaveMemoryTool().targets({"fact": "x"})

    assert target.text == str(memory_file({variable: str(tmp_path / "here")}))


_BY_AGENT = "<!-- saved by graph-agent, thread t{}, 2026-11-2{} in /srv -->"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("- a <!-- saved by graph-agent -->", MemoryNote("a", "", "", "")),
        ("* a <!-- saved by graph-agent, thread t-1.x -->", MemoryNote("a", "", "", "t-1.x")),
        (
            "- a <!-- saved by graph-agent, thread t1, 2026-11-28 in /x, thread t2, 2027-01-01 in y --> ",
            MemoryNote("a", "2026-11-28", "/x, thread t2, 2027-01-01 in y", "t1"),
        ),
        ("- a <!-- saved by graph-agent, 2026-11-28 in /x -->", MemoryNote("a", "2026-11-28", "/x", "")),
        ("- a", None),
        ("- a <!-- saved by me -->", None),
        ("- a <!-- saved by graph-agent --> and more", None),
        ("a <!-- saved by graph-agent -->", None),
    ],
)
def test_only_a_line_with_the_comment_of_the_tool_is_the_agents(line: str, note: MemoryNote | None) -> None:
    memory = parse_memory(f"be brief\r\n{line}\r\n")

    assert memory == (("be brief", (note,)) if note else (f"be brief\n{line}", ()))


@pytest.mark.parametrize("name", ["plain", "a --> b", "a\n- b", "a <!-- b"])
async def test_what_is_saved_is_read_back_with_its_folder_whatever_the_folder_is_called(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    tool = _tool(tmp_path)

    result = await execute(tool, {"fact": "x <!-- y -->\n- z"}, ToolContext(tmp_path / name, thread_id="t1"))

    [note] = parse_memory(_kept(tmp_path)).notes
    assert (note.fact, note.date, note.thread_id) == ("x <! -- y -- > - z", _TODAY, "t1")
    assert note.folder.startswith(f"{tmp_path}/{name[0]}")
    assert result.metadata["noted"] == note.fact


@pytest.mark.parametrize(
    ("asked", "removed"),
    [
        ({}, "c"),
        ({"number": 1}, "a"),
        ({"number": 3}, "b"),
        ({"number": 0}, None),
        ({"number": 4}, None),
        ({"threads": ["t1"]}, "a"),
        ({"threads": ["t2", "t1"]}, "c"),
        ({"threads": []}, None),
    ],
)
def test_the_newest_line_or_a_numbered_one_is_removed_and_no_other_changes(
    tmp_path: Path, asked: dict[str, Any], removed: str | None
) -> None:
    lines = ("me", "", "## Agent Memories", "- a {0}", "- own", "- c {2}", "- b {1}", "", "# More", "x")
    marks = (_BY_AGENT.format(1, 1), _BY_AGENT.format(2, 2), _BY_AGENT.format(2, 3))
    text = "\r\n".join(lines).format(*marks)
    _given(tmp_path, text)

    note = forget_note(tmp_path / "own" / "CONTEXT.md", **asked)

    assert (note and note.fact) == removed
    assert _kept(tmp_path) == "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(f"- {removed} ")
    )


async def test_undoing_the_only_line_gives_the_file_back_as_it_was(tmp_path: Path) -> None:
    befores = ("be brief\n", "# Me\nx\n\n## Rules\nnone\n", "")
    _given(tmp_path, "")
    kept = []
    for before in befores:
        (tmp_path / "own" / "CONTEXT.md").write_text(before)
        await _save(tmp_path, "new")
        forget_note(tmp_path / "own" / "CONTEXT.md")
        kept.append(_kept(tmp_path))

    assert tuple(kept) == befores
    assert forget_note(tmp_path / "none" / "CONTEXT.md") is None
    assert not (tmp_path / "none").exists()


async def test_lines_saved_while_others_are_removed_are_all_kept(tmp_path: Path) -> None:
    for number in range(8):
        await _save(tmp_path, f"old {number}")
    file = tmp_path / "own" / "CONTEXT.md"

    await asyncio.gather(
        *(_save(tmp_path, f"new {number}") for number in range(8)),
        *(asyncio.to_thread(forget_note, file, number=1) for _ in range(8)),
    )

    assert sorted(note.fact for note in parse_memory(file.read_text()).notes) == [f"new {n}" for n in range(8)]
