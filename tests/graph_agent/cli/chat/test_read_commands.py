from pathlib import Path

import pytest

from graph_agent.cli.chat.read_commands import ReadCommands
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage


async def test_each_look_shows_the_thread_it_was_made_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(text("hello")))
    async with stage.life() as session:
        await session.start()
        await session.send("hi")
    look = ReadCommands(stage.database, THREAD, "default")

    shown = {}
    for name in ("threads", "calls", "inspect", "todo"):
        look.show(name, "")
        shown[name] = capsys.readouterr().out

    assert THREAD in shown["threads"]
    assert THREAD in shown["inspect"]
    assert shown["todo"] == "No todo list yet.\n"
    look.show("inspect", "messages.2.content")
    assert "hello" in capsys.readouterr().out


async def test_a_call_of_this_thread_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(calls(("call_1", "look")), text("hello")))
    async with stage.life() as session:
        await session.start()
        await session.send("hi")

    ReadCommands(stage.database, THREAD, "default").show("calls", "call_1")

    assert capsys.readouterr().out.splitlines()[2:] == ["  error: there is no tool 'look'"]


async def test_a_thread_is_exported_while_it_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(text("hello")))
    async with stage.life() as session:
        await session.start()
        await session.send("hi")
        look = ReadCommands(stage.database, THREAD, "default")
        look.show("export", str(tmp_path / "page.html"))
        look.show("export", "")

    assert capsys.readouterr().out.splitlines() == [
        f"Wrote {tmp_path / 'page.html'}.",
        "Name a file, for example /export thread.html (.html and .md to read, .json to import).",
    ]
    assert "<title>hi</title>" in (tmp_path / "page.html").read_text()
