"""A call is parsed, its facts collected, its change planned and compared once, and little code runs for it."""

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import graph_agent.toolbox.call_preparation as preparation
from graph_agent import open_session
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from tests.architecture.checkout import ROOT
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.toolbox_world import World
from tests.scenarios.stage import Stage
from tools import running
from tools.file_ops import change
from tools.file_ops.write_file import WriteFileTool

_WRITE = ("write_file", {"file_path": "a.txt", "content": "one\n"})
_BASH = ("bash", {"command": "echo hello"})


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)

    count(running, "parse_arguments")
    count(preparation, "call_facts")
    count(WriteFileTool, "plan")
    count(change, "diff_texts")
    return counted


async def _run(folder: Path, mode: str, tool: str, arguments: dict[str, Any]) -> World:
    world = World(folder)
    model = ScriptedModel(calls(("c1", tool, arguments)), text("done"))
    toolbox: Any = world.box
    stage = Stage(folder / "agent.db", model, toolbox)
    async with stage.open_session(mode=mode) as session:
        result = await _approved(session, await session.send("go"))
    assert result.status == "done"
    return world


async def _approved(session: Session, result: TurnResult) -> TurnResult:
    for item in result.questions:
        await session.decide(item.question, "approve")
    return await session.proceed() if result.questions else result


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_written_file_is_parsed_judged_planned_and_compared_once(
    tmp_path: Path, mode: str, counts: Counter[str]
) -> None:
    world = await _run(tmp_path, mode, *_WRITE)

    assert (world.workspace / "a.txt").read_text() == "one\n"
    assert counts == {"parse_arguments": 1, "call_facts": 1, "plan": 1, "diff_texts": 1}


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_command_is_parsed_and_judged_once(tmp_path: Path, mode: str, counts: Counter[str]) -> None:
    await _run(tmp_path, mode, *_BASH)

    assert counts == {"parse_arguments": 1, "call_facts": 1}


async def test_a_file_that_changed_since_is_planned_again(tmp_path: Path, counts: Counter[str]) -> None:
    world = World(tmp_path)
    tool, arguments = _WRITE
    toolbox: Any = world.box
    stage = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", tool, arguments)), text("done")), toolbox)
    async with stage.open_session() as session:
        result = await session.send("go")
        (world.workspace / "a.txt").write_text("somebody else's\n")
        await _approved(session, result)

    assert (world.workspace / "a.txt").read_text() == "somebody else's\n"
    assert (counts["parse_arguments"], counts["call_facts"] > 1, counts["plan"] > 1) == (1, True, True)


async def test_an_edit_at_the_prompt_is_prepared_once(tmp_path: Path, counts: Counter[str]) -> None:
    world = World(tmp_path)
    tool, arguments = _WRITE
    toolbox: Any = world.box
    stage = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", tool, arguments)), text("done")), toolbox)
    async with stage.open_session() as session:
        [item] = (await session.send("go")).questions
        counts.clear()
        edited = {**arguments, "content": "two\n"}
        await session.preview_edit(item.question, edited)
        await session.decide(item.question, "edit", arguments=edited)
        await session.proceed()

    assert (world.workspace / "a.txt").read_text() == "two\n"
    assert counts == {"parse_arguments": 1, "call_facts": 1, "plan": 1, "diff_texts": 1}


_MODULES, _FUNCTIONS = 70, 450
"""As docs/architecture.md says; before the modules were rewritten there were 107 and 540."""


async def test_few_modules_and_functions_run_between_a_reply_and_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls_at: dict[CodeType, list[float]] = {}
    product = tuple(f"{ROOT / name}/" for name in ("graph_agent", "tools", "policy"))

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(product):
            calls_at.setdefault(frame.f_code, []).append(time.monotonic())

    with FakeOpenAI([TC("c1", *_WRITE), TXT("done")]) as server:
        for name, value in (("GRAPH_AGENT_HOME", str(tmp_path / "home")), ("OPENAI_BASE_URL", server.base_url)):
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            async with open_session(workspace=tmp_path, flags={"mode": "bypassPermissions"}) as session:
                await session.send("write it")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        begin, end = (request.at for request in server.requests)

    ran = [code for code, times in calls_at.items() if any(begin <= at <= end for at in times)]
    modules = {code.co_filename for code in ran}
    functions = {(code.co_filename, code.co_qualname) for code in ran}
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert 30 < len(modules) <= _MODULES
    assert 200 < len(functions) <= _FUNCTIONS
