from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tools.shell_ops.background import ShellView, TooManyShells, start_in_background, unknown_shell
from tools.shell_ops.shell_command import ShellCommand


class _Refusing:
    def __init__(self, refusal: Exception) -> None:
        self._refusal = refusal

    async def start(self, run: ShellCommand) -> ShellView:
        raise self._refusal


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (TooManyShells("8 run already"), "8 run already"),
        (OSError(12, "Cannot allocate memory"), "The command could not be started: Cannot allocate memory."),
    ],
)
async def test_a_refusal_is_a_result_that_says_why(tmp_path: Path, refusal: Exception, told: str) -> None:
    context = ToolSurroundings(tmp_path).context()

    result = await start_in_background(ShellCommand("true", 1, context.workspace, context), _Refusing(refusal))  # type: ignore[arg-type]  # only starts

    assert (result.error, result.metadata) == (told, {"error_type": "execution"})


def test_of_many_shells_the_newest_are_named() -> None:
    known = [ShellView(f"sh{number}", "true", "exit code 0", is_running=False) for number in range(1, 13)]

    assert (unknown_shell("x", known).error or "").endswith(
        "it has sh3, sh4, sh5, sh6, sh7, sh8, sh9, sh10, sh11, sh12."
    )
