import asyncio
import stat
from pathlib import Path

import pytest

from graph_agent.config.paths import memory_file
from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.memory import SaveMemoryTool
from tools.base import InterruptedCall, ToolContext, ToolResult
from tools.running import execute, normalize_arguments, predict_effect, preview
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "save_memory": ExampleCalls({"fact": "likes tabs"}, {"fact": " "}, writes_in="memory/"),
}

_MARK = "<!-- saved by graph-agent, thread t1 -->"


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
    assert _kept(tmp_path) == f"## Agent Memories\n\n- likes tabs always {_MARK}\n"
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

    assert _kept(tmp_path) == after.format(_MARK)


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

    assert "is not text in a Unicode encoding; nothing was added" in str(result.error)
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
