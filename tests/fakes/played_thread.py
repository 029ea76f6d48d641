"""A thread that the real graph played on a scripted model, for tests of commands that travel."""

import asyncio
from pathlib import Path

from langchain_core.messages import AIMessage

from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import Stage

__all__ = ["play"]


def play(database: Path, *turns: str, replies: tuple[AIMessage, ...] = ()) -> list[str]:
    """Send each turn; the checkpoint that each one rested at."""

    async def played() -> list[str]:
        async with Stage(database, ScriptedModel(*replies)).open_session() as session:
            await session.start()
            return [(await session.send(turn)).checkpoint_id for turn in turns]

    return asyncio.run(played())
