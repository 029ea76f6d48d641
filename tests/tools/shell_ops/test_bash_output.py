from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.background import Background, background
from tests.fakes.tool_ports import ToolSurroundings
from tools.context import Limits
from tools.shell_ops.bash_output import BashOutputTool

EXAMPLE_CALLS = {
    "bash_output": ExampleCalls({"id": "sh1"}, {"id": "sh9"}),
}


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Background]:
    async with background(tmp_path) as life:
        yield life


def _let_on(life: Background, step: str) -> None:
    (life.around.workspace / step).touch()


async def test_each_call_shows_the_output_since_the_last_one(life: Background) -> None:
    await life.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3")
    first = await life.output("sh1")
    _let_on(life, "go")
    second = await life.output("sh1")
    third = await life.output("sh1")

    code = "[exit code 3, that of the last command; earlier ones may have failed]"
    assert first.output == "one\n[running for 0 s]"
    assert (second.output, third.output) == (f"two\n{code}", f"(no new output)\n{code}")
    assert (third.error, third.metadata | {"output_bytes": 0}) == (
        None,
        {"shell": "sh1", "is_running": False, "exit_code": 3, "output_bytes": 0},
    )


async def test_an_interrupted_call_that_is_repeated_loses_nothing(life: Background) -> None:
    await life.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two")
    await life.output("sh1", call="r1")
    _let_on(life, "go")
    await life.output("sh1", call="r2")

    again = await life.next_life().output("sh1", call="r2")

    assert again.output.startswith("two\n[exit code 0")


async def test_it_waits_a_moment_for_new_output(life: Background) -> None:
    await life.start("until [ -e go ]; do sleep 0.05; done; sleep 0.4; echo late; sleep 61")
    _let_on(life, "go")

    assert (await life.output("sh1")).output.startswith("late\n[running for")


async def test_a_character_is_not_split(life: Background) -> None:
    await life.start("printf 'caf\\303'; until [ -e go ]; do sleep 0.05; done; printf '\\251'; sleep 61")
    first = (await life.output("sh1")).output
    _let_on(life, "go")
    second = (await life.output("sh1")).output

    assert (first.split("\n")[0], second.split("\n")[0]) == ("caf", "é")


async def test_long_output_is_cut_in_the_middle_and_can_be_read_in_full(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(result_chars=500)) as life:
        await life.start("seq 1 400000")
        result = await life.output("sh1")

    lines = result.output.splitlines()
    assert (lines[0], lines[-2], lines[-1], len(result.output) < 1_000) == ("1", "400000", "[exit code 0]", True)
    assert life.blobs.get(result.metadata["blob"]).startswith(b"1\n2\n3\n")


async def test_a_syntax_error_shows_only_what_the_model_wrote(life: Background) -> None:
    await life.start("echo 'unclosed")

    output = (await life.output("sh1")).output
    assert ("trap" in output, "unexpected EOF" in output) == (False, True)


async def test_a_program_that_needs_a_terminal_gets_a_hint(life: Background) -> None:
    await life.start("read a < /dev/tty || exit 9")

    assert "without a terminal and without input" in (await life.output("sh1")).output


async def test_removed_output_is_reported(life: Background) -> None:
    await life.start("true")
    life.blobs.drop_spools("t1")

    assert (await life.output("sh1")).output == "(its output was removed)\n[exit code 0]"


@pytest.mark.parametrize("shell", ["sh9", "nonsense", "", "sh1 ; x", "sh99999999999999999999"])
async def test_an_unknown_id_is_answered_with_the_known_ones(life: Background, shell: str) -> None:
    await life.start("true")

    result = await life.output(shell)

    assert result.error == f"This thread has no background shell {shell!r}: it has sh1."


async def test_a_shell_is_not_visible_to_another_thread(life: Background) -> None:
    await life.start("echo secret")

    assert (await life.output("sh1", thread="t2")).metadata["error_type"] == "not_found"


async def test_without_a_session_there_are_no_background_shells(tmp_path: Path) -> None:
    result = await BashOutputTool().execute(id="sh1", context=ToolSurroundings(tmp_path).context())

    assert result.error == "Background shells are not available here; run the command without background."
