"""Brings a chat's turn to rest: asks what is open until nothing is. Starts no turn with a message."""

from dataclasses import replace

from rich.console import Console

from graph_agent.cli.ask.approving import StopTurn
from graph_agent.cli.ask.asking import Asking
from graph_agent.cli.ask.prompt import Prompt
from graph_agent.cli.ask.terminal import Interrupted, Left, Terminal
from graph_agent.cli.codes import Exit
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.exits import exit_for
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.story import Story
from graph_agent.cli.resting import has_fresh_budget
from graph_agent.cli.turning import Turning
from graph_agent.session.api import Rest

__all__ = ["Settling"]


class Settling:
    """The questions of one chat."""

    def __init__(self, terminal: Terminal, console: Console, story: Story, turning: Turning) -> None:
        self._terminal = terminal
        self._console = console
        self._story = story
        self._turning = turning
        self.code = Exit.DONE
        """How the chat ends when it is left at a question."""

    async def settled(self, session: Conversation, rest: Rest) -> Rest:
        """Ask what is open until nothing is, and whether to go on where a budget of the turn is used up.

        Raises:
            Interrupted, Left: the person leaves; what is open stays so.
        """
        while rest.status in ("awaiting_approval", "interrupted") or has_fresh_budget(rest):
            if has_fresh_budget(rest):
                self._story.line(marked(rest.error or "", "red"))
                if not await self.agrees():
                    return rest
                rest = await self._turning.run(session, session.continue_turn())
                continue
            self._terminal.keep_typed()
            asking = Asking(Prompt(session, self._terminal, self._story, self._console.width))
            try:
                await asking.ask_all(rest.questions)
            except StopTurn:
                rest = await self._turning.run(session, session.stop())
                continue
            except (Interrupted, Left):
                left = [item for item in rest.questions if item.question.call_id not in asking.answered]
                self.code = exit_for(replace(rest, questions=tuple(left)))
                raise
            rest = await self._turning.run(session, session.proceed())
        return rest

    async def agrees(self) -> bool:
        """Whether the person says yes; to leave is to say no. Keys typed until the question stands do not count."""
        self._terminal.keep_typed()
        try:
            return (await self._terminal.answer("Go on? [y]es [n]o > ") or "").strip().lower() in ("y", "yes")
        except (Interrupted, Left):
            return False
