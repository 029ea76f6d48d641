from pathlib import Path

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.background import background

EXAMPLE_CALLS = {
    "bash_list": ExampleCalls({}, None),
}


async def test_each_shell_has_a_line_with_its_state_and_unread_bytes(tmp_path: Path) -> None:
    async with background(tmp_path) as life:
        await life.start("echo out; exit 2")
        await life.start("sleep 61.1\n# for a while")
        await life.start("true", thread="t2")

        result = await life.listed()

    first, second = result.output.splitlines()
    told = "sh1  exit code 2, that of the last command; earlier ones may have failed, 4 bytes not read yet"
    assert first == f"{told}  $ echo out; exit 2"
    assert (second.startswith("sh2  running for "), second.endswith("  $ sleep 61.1…")) == (True, True)
    assert result.display == "1 running, 1 ended"
