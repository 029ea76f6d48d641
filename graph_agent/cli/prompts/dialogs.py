"""Asks about one call that was broken off: retry, done, cancel; what still runs of it can be ended first.

Asks what the model wants to know: an option by its number, or words of the user's own. Approves nothing.

Asks once whether a project folder is trusted, before anything of it counts; the answer is for its contents.

Asks which model is meant, where the endpoint has several and none is named. Knows no endpoint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from graph_agent.app.project_trust import project_at, record_trust
from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.prompts.approval import StopTurn
from graph_agent.cli.prompts.choices import ALL, END, RECOVERY, Choice, choice_line, match_choice
from graph_agent.cli.prompts.question import Prompt, Reply
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.approval_page import question_page, recovery_page
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.settings import format_trust
from graph_agent.config.project import Project
from graph_agent.errors import AgentError
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["WHAT_IT_DID", "ModelQuestionPrompt", "RecoveryPrompt", "ask_trust", "choose_model", "picked"]

WHAT_IT_DID = "What did it do? The model is told: "


@dataclass(frozen=True, slots=True)
class RecoveryPrompt:
    """The recovery questions of one chat."""

    prompt: Prompt

    async def ask(self, item: OpenQuestion, place: str, *, offers_all: bool) -> bool:
        """Ask until it is decided, from here or elsewhere; False when all are to be decided at once."""
        page = self.page(item, place)
        choices: tuple[Choice, ...] = (*RECOVERY, ALL) if offers_all else RECOVERY
        offered = (*choices, END) if item.processes else choices
        while key := await self.prompt.key(item, page, offered):
            page = []
            if key == ALL.key:
                return False
            if key == END.key:
                offered = (*choices, END) if await self._end_processes(item) else choices
            elif await self._stands(item, key):
                break
        return True

    def page(self, item: OpenQuestion, place: str) -> list[Text]:
        """Everything that is known of the call."""
        return recovery_page(item, self.prompt.width, place)

    async def _stands(self, item: OpenQuestion, key: str) -> bool:
        match key:
            case "d":
                reply = Reply("done", await self.prompt.words(WHAT_IT_DID))
            case "r":
                reply = Reply("retry")
            case _:
                reply = Reply("cancel")
        return await self.prompt.decide(item, reply)

    async def _end_processes(self, item: OpenQuestion) -> tuple[int, ...]:
        left = await self.prompt.session.end_processes(item.question)
        named = ", ".join(map(str, left))
        self.prompt.say(f"These could not be ended: pid {named}" if left else "Nothing of it runs any more.")
        return left


_SKIP = "/skip"
_STOP = "/stop"
_HOW = f"Your own words{{}}; {_SKIP} leaves it unanswered, {_STOP} ends the turn."


@dataclass(frozen=True, slots=True)
class ModelQuestionPrompt:
    """The model's questions in one chat."""

    prompt: Prompt

    async def ask(self, item: OpenQuestion, place: str) -> None:
        """Ask until the question has its answer, from here or elsewhere.

        Raises:
            StopTurn: the person wants the turn stopped instead.
        """
        options = [str(option) for option in item.call["arguments"].get("options") or ()]
        page = question_page(item, self.prompt.width, place)
        while line := await self.prompt.sentence(item, page, _HOW.format(", or a number" if options else "")):
            if line == _STOP:
                raise StopTurn
            page = []
            reply = Reply("reject") if line == _SKIP else Reply("answer", _meant(line, options))
            if await self.prompt.decide(item, reply):
                return


def _meant(line: str, options: Sequence[str]) -> str:
    """The option that a number stands for; anything else is an answer as it is."""
    if line.isascii() and line.isdigit() and 1 <= int(line) <= len(options):
        return options[int(line) - 1]
    return line


_ANSWERS = (
    Choice("y", "yes", "[y]es, trust it"),
    Choice("n", "no", "[n]o, ignore these files"),
    Choice("s", "show", "[s]how the files"),
)


async def ask_trust(workspace: Path, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Ask, unless there is nothing to trust or these very contents were answered about; what is unreadable is told.

    Raises:
        Interrupted, Left: Ctrl-C, Ctrl-D; nothing is kept, so that the next chat asks again.
    """
    try:
        project = project_at(workspace)
        if project.trust not in ("untrusted", "changed"):
            return
        page = list(format_trust(project))
    except AgentError as failure:
        say(escape(str(failure)))
        return
    for line in page:
        say(line)
    try:
        record_trust(project, trusted=await _answered(project, terminal, say))
    except AgentError as failure:
        say(escape(str(failure)))


async def _answered(project: Project, terminal: Terminal, say: Callable[[str], None]) -> bool:
    terminal.drop_typed_ahead()
    while True:
        key = match_choice(await terminal.answer(f"Trust this folder? {choice_line(_ANSWERS)}") or "", _ANSWERS)
        if key in ("y", "n"):
            return key == "y"
        if key == "s":
            for line in _shown(project):
                say(line)


def _shown(project: Project) -> list[str]:
    lines: list[str] = []
    for file in project.files:
        lines += [escape(f"─── {file.name}"), *(escape(f"  │ {line}") for line in file.text.splitlines())]
    return lines


_SHOWN = 40


async def choose_model(session: Conversation, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Let the person choose, unless there is only one; an empty answer leaves it open.

    Raises:
        Interrupted, Left: Ctrl-C, Ctrl-D.
    """
    try:
        names = await session.model_names()
    except AgentError as failure:
        say(str(failure))
        return
    if not names:
        say("The endpoint lists no models; /model NAME takes one all the same.")
        return
    name: str | None = names[0] if len(names) == 1 else await _asked(names, terminal, say)
    if name is None:
        say("No model is chosen; /model NAME chooses one.")
        return
    await session.switch_model(name)
    say(f"Model: {session.model_label}")


async def _asked(names: Sequence[str], terminal: Terminal, say: Callable[[str], None]) -> str | None:
    say("No model is named, and the endpoint has these (GRAPH_AGENT_MODEL names one for good):")
    for number, name in enumerate(names[:_SHOWN], 1):
        say(f"  {number:>2}  {name}")
    if len(names) > _SHOWN:
        say(f"  … and {len(names) - _SHOWN} more, by name")
    terminal.keep_typed()
    while text := (await terminal.answer("Model, by number or name > ") or "").strip():
        if found := picked(text, names):
            return found
        say(f"{text!r} is none of them, or several; an empty line chooses none")
    return None


def picked(text: str, names: Sequence[str]) -> str | None:
    """The name that a number, the name itself or a unique part of it means."""
    if text in names:
        return text
    if text.isdecimal() and 0 < int(text) <= min(len(names), _SHOWN):
        return names[int(text) - 1]
    fitting = [name for name in names if text.casefold() in name.casefold()]
    return fitting[0] if len(fitting) == 1 else None
