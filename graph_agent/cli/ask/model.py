"""Asks which model is meant, where the endpoint has several and none is named. Knows no endpoint."""

from collections.abc import Callable, Sequence

from graph_agent.cli.ask.terminal import Terminal
from graph_agent.cli.conversation import Conversation
from graph_agent.errors import AgentError

__all__ = ["choose_model", "picked"]

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
