"""What is done about a reply that only writes a call down: the model is told, at most twice. Knows no endpoint."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import add_usage

from graph_agent.model.call_forms import WrittenCall, offered_as
from graph_agent.model.written import UNREADABLE, written_calls
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["MOST_TOLD", "Correction", "corrected", "in_all", "until_answered"]

MOST_TOLD = 2
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)

_TOLD = (
    "No tool was called: your reply holds the call of {name} as text, which runs nothing. Call it by function "
    "calling, or, if you did not mean to call it, answer without writing a call."
)
_AGAIN = "The model wrote the call of {name} as text instead of making it; it is told so ({told} of {most})."
_GIVEN_UP = (
    "The model wrote the call of {name} as text, and nothing of it has run. If this model knows no function calls, "
    'set tool_protocol = "prompt" under [model].'
)


class Correction(NamedTuple):
    """What to do about a reply that is no final answer."""

    request: ModelRequest | None
    """What to ask next; None: the reply is taken as it is."""
    words: str
    """For the user."""


def corrected(request: ModelRequest, reply: AIMessage, told: int) -> Correction | None:
    """What follows from a call in the text of a reply without calls, told about so often; None: it is an answer."""
    offered = [str(tool["function"]["name"]) for tool in request.tools]
    if reply.tool_calls or not offered:
        return None
    # What is written between tags as a call and lacks a name that can be read was meant as one, too.
    written = [call.name for call in _written(reply.text, offered)]
    meant = [name or "a tool without a name" for name in written if not name or offered_as(name, offered)]
    named = [offered_as(name, offered) or name for name in meant]
    if not named:
        return None
    if told == MOST_TOLD:
        return Correction(None, _GIVEN_UP.format(name=named[0]))
    messages = [*request.messages, AIMessage(reply.text), HumanMessage(_TOLD.format(name=named[0]))]
    words = _AGAIN.format(name=named[0], told=told + 1, most=MOST_TOLD)
    return Correction(replace(request, messages=messages), words)


async def until_answered(
    ask: Callable[[ModelRequest], Awaitable[AIMessage]], request: ModelRequest, on_delta: OnDelta
) -> AIMessage:
    """The reply, asked for again where it only writes a call down."""
    told, earlier = 0, None
    while True:
        reply = in_all(await ask(request), earlier)
        correction = corrected(request, reply, told)
        if correction is None:
            return reply
        if correction.request is None:
            on_delta(Delta("note", correction.words))
            return reply
        on_delta(Delta("retry", correction.words))
        request, told, earlier = correction.request, told + 1, reply


def _written(text: str, offered: Sequence[str]) -> list[WrittenCall]:
    """The calls in a text. What cannot be read as one counts outside of code only: code is shown to the user."""
    readable = [call for call in written_calls(text, offered).calls if call is not UNREADABLE]
    outside = written_calls(_CODE.sub("", text), offered).calls
    return [*readable, *(call for call in outside if call is UNREADABLE)]


def in_all(reply: AIMessage, earlier: AIMessage | None) -> AIMessage:
    """The reply with what those before it, which it replaces, have used as well."""
    if earlier is None:
        return reply
    usage = add_usage(reply.usage_metadata, earlier.usage_metadata)
    is_told = reply.usage_metadata or earlier.usage_metadata
    return reply.model_copy(update={"usage_metadata": usage}) if is_told else reply
