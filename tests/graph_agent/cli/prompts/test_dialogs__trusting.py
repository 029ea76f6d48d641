from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from graph_agent.app.project_trust import project_at
from graph_agent.cli.prompts.dialogs import ask_trust
from graph_agent.cli.prompts.terminal import InputClosed, Terminal


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(output=DummyOutput()):
        yield keys


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
    assert any(line.startswith("    AGENTS.md: 1 lines of instructions to the model") for line in said)


async def test_the_files_can_be_read_before_the_answer_and_cannot_paint_the_terminal(
    folder: Path, keys: PipeInput
) -> None:
    said = await _asked(folder, keys, "s\ry\r")

    assert said[-2:] == ["─── AGENTS.md", "  │ Use \\x1b[31mtabs."]


async def test_leaving_keeps_no_answer(folder: Path, keys: PipeInput) -> None:
    with pytest.raises(InputClosed):
        await _asked(folder, keys, "\x04")
    assert project_at(folder).trust == "untrusted"


async def test_settings_that_cannot_be_read_are_told_and_not_asked_about(folder: Path, keys: PipeInput) -> None:
    (folder / ".graph-agent").mkdir()
    (folder / ".graph-agent" / "config.toml").write_text("= no toml")

    said = await _asked(folder, keys, "")

    assert (len(said), "cannot be read as TOML" in said[0], project_at(folder).trust) == (1, True, "untrusted")
