import asyncio
from collections.abc import AsyncGenerator

import pytest

from graph_agent.model.openai.errors import SilentReply
from graph_agent.model.openai.stream import unless_silent

LIMIT_S = 0.3


async def heard(*blocks: str, times: int) -> int:
    """How many of the blocks, repeated so often at a fifth of the limit, come through."""

    async def paced() -> AsyncGenerator[bytes, None]:
        for number in range(times):
            await asyncio.sleep(LIMIT_S / 5)
            yield blocks[min(number, len(blocks) - 1)].encode()

    return len([block async for block in unless_silent(paced(), LIMIT_S)])


@pytest.mark.parametrize(
    "blocks",
    [
        (": ping\n\n",),
        (":", " pi", "ng\n\n", ": ", "a"),
        ("\r\n",),
        ('data: {"a": 1}\n\n', "event: ping\ndata:\n\n"),
        ('data: {"a', "a"),
    ],
)
async def test_signs_of_life_without_end_are_no_answer(blocks: tuple[str, ...]) -> None:
    with pytest.raises(SilentReply, match=r"^0\.3 s$"):
        await heard(*blocks, times=50)


@pytest.mark.parametrize(
    "blocks",
    [(": ping\n\ndata: 1\n\n",), ('{"a": "', "a"), ("\n", "\ufeff[", ": "), ("d", "ata: 1\n", "data: 1\n")],
)
async def test_an_answer_may_take_its_time(blocks: tuple[str, ...]) -> None:
    assert await heard(*blocks, times=9) == 9
