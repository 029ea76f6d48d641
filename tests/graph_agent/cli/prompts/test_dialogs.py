import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from graph_agent.app.project_trust import project_at
from graph_agent.cli.prompts.choices import NOT_A_KEY
from graph_agent.cli.prompts.dialogs import ask_trust, choose_model, find_model
from graph_agent.cli.prompts.editor import EditFailed, edit_arguments
from graph_agent.cli.prompts.terminal import InputClosed, Terminal
from graph_agent.events import EventBus
from tests.fakes.scripted_session import ScriptedSession

NAMES = ("gpt-5", "gpt-5-mini", "qwen3:8b")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-5", "gpt-5"),
        ("3", "qwen3:8b"),
        ("QWEN", "qwen3:8b"),
        ("mini", "gpt-5-mini"),
        ("gpt", None),
        ("0", None),
        ("4", None),
        ("x", None),
    ],
)
def test_a_number_a_name_or_a_unique_part_of_one_picks(text: str, name: str | None) -> None:
    assert find_model(text, NAMES) == name


@pytest.fixture
async def keys() -> AsyncIterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(output=DummyOutput()):
        yield keys


async def _choose(
    folder: Path, keys: PipeInput, models: tuple[str, ...], typed: str = ""
) -> tuple[str | None, list[str]]:
    session = ScriptedSession(EventBus(), folder)
    session.models, session.model_name = models, None
    said: list[str] = []
    asyncio.get_running_loop().call_later(0.02, keys.send_text, typed)
    await choose_model(session, Terminal(None, source=keys), said.append)
    return session.model_name, said


@pytest.mark.parametrize(
    ("models", "typed", "chosen", "said"),
    [
        (("only",), "", "only", "Model: only @ scripted"),
        (NAMES, "\r", None, "No model is chosen. Choose one with /model NAME."),
        ((), "", None, "The endpoint lists no models. Choose one with /model NAME."),
    ],
)
async def test_a_model_is_asked_for_where_there_are_several(
    tmp_path: Path, keys: PipeInput, models: tuple[str, ...], typed: str, chosen: str | None, said: str
) -> None:
    name, lines = await _choose(tmp_path, keys, models, typed)

    assert (name, lines[-1], len(lines) > 1) == (chosen, said, len(models) > 1)


async def test_one_of_several_is_asked_for_until_the_answer_fits(tmp_path: Path, keys: PipeInput) -> None:
    keys.send_text("a message, typed before\r")

    name, said = await _choose(tmp_path, keys, NAMES, "gpt\rmini\r")

    assert name == "gpt-5-mini"
    assert said[1:] == [
        "   1  gpt-5",
        "   2  gpt-5-mini",
        "   3  qwen3:8b",
        "'gpt' matches no model, or several. An empty line chooses none.",
        "Model: gpt-5-mini @ scripted",
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    made = tmp_path / "project"
    made.mkdir()
    (made / "AGENTS.md").write_text("Use \x1b[31mtabs.\n")
    return made


async def _asked(folder: Path, keys: PipeInput, typed: str) -> list[str]:
    said: list[str] = []
    terminal = Terminal(None, source=keys)
    keys.send_text(typed)
    await ask_trust(folder, terminal, said.append)
    return said


@pytest.mark.parametrize(("typed", "trust"), [("y\r", "trusted"), ("n\r", "declined"), ("\rx\rno\r", "declined")])
async def test_only_yes_trusts_and_nothing_but_no_refuses(
    folder: Path, keys: PipeInput, typed: str, trust: str
) -> None:
    said = await _asked(folder, keys, typed)

    again = await _asked(folder, keys, "")
    assert (project_at(folder).trust, again) == (trust, [])
    assert any(line.startswith("    AGENTS.md: 1 line of instructions to the model") for line in said)


async def test_the_files_can_be_read_before_the_answer_and_cannot_paint_the_terminal(
    folder: Path, keys: PipeInput
) -> None:
    said = await _asked(folder, keys, "?\ro\rs\ry\r")

    assert "  y trust       use its settings, instructions, hooks and servers" in said
    assert sum("AGENTS.md: " in line for line in said) == 1
    assert NOT_A_KEY in " ".join(said)
    assert said[-2:] == ["─── AGENTS.md", "  │ Use \\x1b[31mtabs."]


async def test_leaving_keeps_no_answer(folder: Path, keys: PipeInput) -> None:
    with pytest.raises(InputClosed):
        await _asked(folder, keys, "\x04")
    assert project_at(folder).trust == "untrusted"


async def test_settings_that_cannot_be_read_are_told_and_not_asked_about(folder: Path, keys: PipeInput) -> None:
    (folder / ".graph-agent").mkdir()
    (folder / ".graph-agent" / "config.toml").write_text("= no toml")

    said = await _asked(folder, keys, "")

    assert (len(said), "is not valid TOML" in said[0], project_at(folder).trust) == (1, True, "untrusted")


def _use_editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    editor = folder / "my editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"'{editor}' -x")


async def test_the_editor_gets_json_and_what_it_leaves_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use_editor(tmp_path, monkeypatch, """sed -i 's/old/new é/' "$2" """)

    assert await edit_arguments({"text": "old", "n": [1]}) == {"text": "new é", "n": [1]}


async def test_an_editor_that_fails_or_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use_editor(tmp_path, monkeypatch, "exit 3")
    with pytest.raises(EditFailed, match="ended with code 3"):
        await edit_arguments({"a": 1})
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(EditFailed, match="'/no/such/editor' could not be started"):
        await edit_arguments({})
