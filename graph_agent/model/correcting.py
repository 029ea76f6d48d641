"""What is done about a reply that only writes a call down: the model is told, at most twice. Knows no endpoint."""

from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import add_usage

from graph_agent.model.written import written_calls
from graph_agent.ports import ModelRequest

__all__ = ["MOST_TOLD", "Correction", "corrected", "in_all"]

MOST_TOLD = 2

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
    known = {name.casefold() for name in offered}
    if reply.tool_calls or not offered:
        return None
    # What is written between tags as a call and lacks a name that can be read was meant as one, too.
    written = [call.name for call in written_calls(reply.text, offered).calls]
    named = [name or "a tool without a name" for name in written if not name or name.casefold() in known]
    if not named:
        return None
    if told == MOST_TOLD:
        return Correction(None, _GIVEN_UP.format(name=named[0]))
    messages = [*request.messages, AIMessage(reply.text), HumanMessage(_TOLD.format(name=named[0]))]
    words = _AGAIN.format(name=named[0], told=told + 1, most=MOST_TOLD)
    return Correction(replace(request, messages=messages), words)


def in_all(reply: AIMessage, earlier: AIMessage | None) -> AIMessage:
    """The reply with what those before it, which it replaces, have used as well."""
    if earlier is None:
        return reply
    usage = add_usage(reply.usage_metadata, earlier.usage_metadata)
    is_told = reply.usage_metadata or earlier.usage_metadata
    return reply.model_copy(update={"usage_metadata": usage}) if is_told else reply
