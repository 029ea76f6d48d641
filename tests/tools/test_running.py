import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.fakes.tool_ports import ToolSurroundings
from tools.base import BaseTool, Preview, ToolContext, ToolResult
from tools.running import execute, normalize_arguments, preview
from tools.schema import InvalidArguments


class Behaviour(BaseModel):
    what: str


class ControlStop(Exception):
    pass


class Acting(BaseTool):
    name = "acting"
    args_schema = Behaviour
    timeout_s = 0.05

    async def execute(self, *, what: str) -> ToolResult:
        match what:
            case "bug":
                raise KeyError("lost")
            case "timeout of its own":
                raise TimeoutError("server")
            case "control":
                raise ControlStop
            case "sleep":
                await asyncio.sleep(30)
        return ToolResult(what)

    async def preview(self, args: object, context: ToolContext | None = None) -> Preview:
        return Preview("text", "shown" if context is None else context.call_id)


async def test_a_bug_in_a_tool_becomes_an_error_result_with_its_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = await execute(Acting(), {"what": "bug"}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}
    assert result.error == "acting failed inside: KeyError: 'lost'. What it did until then stays done."
    assert [record.exc_info is not None for record in caplog.records] == [True]


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (BaseException("b"), "BaseException: b"),
        (asyncio.CancelledError("unasked"), "CancelledError: unasked"),
        (Mute(), "Mute: it cannot say why"),
    ],
)
async def test_no_tool_ends_the_run_whatever_it_raises(tmp_path: Path, raised: BaseException, told: str) -> None:
    class Wild(Acting):
        async def execute(self, *, what: str) -> ToolResult:
            raise raised

    result = await execute(Wild(), {"what": "x"}, ToolSurroundings(tmp_path).context())

    assert result.error == f"acting failed inside: {told}. What it did until then stays done."


@pytest.mark.parametrize("fields", [{"output": 7}, {"output": "", "display": 7}, {"output": "", "error": 7}])
async def test_a_result_of_the_wrong_types_is_a_bug_of_the_tool(tmp_path: Path, fields: dict[str, Any]) -> None:
    class Odd(Acting):
        async def execute(self, *, what: str) -> ToolResult:
            return ToolResult(**fields)

    result = await execute(Odd(), {"what": "x"}, ToolSurroundings(tmp_path).context())

    assert "of a ToolResult cannot be int" in str(result.error)


async def test_a_tool_over_its_time_is_stopped_and_its_cancellation_set(tmp_path: Path) -> None:
    context = ToolSurroundings(tmp_path).context()

    result = await execute(Acting(), {"what": "sleep"}, context)

    assert result.metadata == {"error_type": "timeout"}
    assert result.error == "acting was stopped after 0.05 seconds; ask for less at once."
    assert context.cancellation.is_set()


async def test_a_timeout_the_tool_raises_itself_is_its_own_failure(tmp_path: Path) -> None:
    result = await execute(Acting(), {"what": "timeout of its own"}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}


async def test_what_is_passing_comes_through(tmp_path: Path) -> None:
    with pytest.raises(ControlStop):
        await execute(Acting(), {"what": "control"}, ToolSurroundings(tmp_path).context(), reraise=(ControlStop,))


async def test_a_cancellation_comes_through_and_is_set_for_threads(tmp_path: Path) -> None:
    context = ToolSurroundings(tmp_path).context()
    tool = Acting()
    tool.timeout_s = 30
    task = asyncio.ensure_future(execute(tool, {"what": "sleep"}, context))
    await asyncio.sleep(0.01)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.cancellation.is_set()


async def test_bad_arguments_are_refused_before_the_tool_is_entered(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="what: missing"):
        await execute(Acting(), {}, ToolSurroundings(tmp_path).context())


def test_only_arguments_that_were_given_are_recorded() -> None:
    class Defaults(BaseTool):
        name = "defaults"

        class Args(BaseModel):
            a: int = 1
            b: int = 2

        args_schema = Args

    assert normalize_arguments(Defaults(), {"b": "3"}) == {"b": 3}


async def test_a_preview_gets_the_context(tmp_path: Path) -> None:
    shown = await preview(Acting(), {"what": "x"}, ToolSurroundings(tmp_path).context(call_id="c9"))

    assert shown == Preview("text", "c9")


async def test_a_tool_that_returns_no_result_is_a_bug_of_the_tool(tmp_path: Path) -> None:
    class Careless(BaseTool):
        name = "careless"

        async def execute(self) -> ToolResult:
            return "text"  # type: ignore[return-value]  # what is tested

    result = await execute(Careless(), {}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}
    assert "execute must return a ToolResult, not str" in str(result.error)
