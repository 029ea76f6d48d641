import pytest

from graph_agent.errors import StaleOwner
from graph_agent.toolbox.toolbox import await_or_default


async def _give(value: int) -> int:
    return value


async def _raise(error: Exception) -> int:
    raise error


async def test_a_bug_gives_the_fallback_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert [await await_or_default(_give(1), 0), await await_or_default(_raise(KeyError("x")), 0)] == [1, 0]
    assert "KeyError" in caplog.text


async def test_control_flow_passes() -> None:
    with pytest.raises(StaleOwner):
        await await_or_default(_raise(StaleOwner("another life has it")), 0)
