"""What a server refused in a request, and the same request without it, so that one bad item never blocks a thread.

An image that cannot be read, a function with a schema that the server rejects, or a message that its content filter
stops would otherwise be part of every later request of the thread. They stay in the history; only requests of this
process leave them out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graph_agent.model.openai.errors import CONTENT_FILTER, Failure
from graph_agent.model.openai.messages import image_references, named_images
from graph_agent.wording import format_count

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from graph_agent.ports import ModelRequest


__all__ = ["LeftOut", "Reduced", "leave_out_refused", "leave_out_suspected", "without_refused"]

_REFUSALS = frozenset((400, 413, 415, 422))
"""Statuses of a response that rejects something in the request."""
_MOST_FUNCTIONS = 128
"""How many functions OpenAI's API takes; assumed where a server says that there are too many, but not how many."""
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is left out of requests, because the server refused it."""

    images: frozenset[str] = frozenset()
    """References of their content."""
    functions: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    """Contents of messages that a content filter refused."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The next thing to try, and what to tell the user about it."""

    left_out: LeftOut
    note: str


def leave_out_refused(
    left_out: LeftOut, failure: Failure, request: "ModelRequest", *, sees: bool
) -> Reduced | None:
    """What to leave out because the server's words name it; None where they name nothing that can be left out.

    `sees` says whether images were sent with the request.
    """
    is_filtered = failure.status == 403 and CONTENT_FILTER.search(failure.server_message)
    if failure.status not in _REFUSALS and not is_filtered:
        return None
    return (
        _without_named_functions(left_out, failure, request)
        or _without_excess_functions(left_out, failure, request)
        or (_without_images(left_out, failure, request) if sees and _IMAGE.search(failure.server_message) else None)
        or _without_filtered_text(left_out, failure, request)
    )


def leave_out_suspected(left_out: LeftOut, failure: Failure, request: "ModelRequest") -> Reduced | None:
    """The request without its images, where the server does not say what it refused."""
    return _without_images(left_out, failure, request) if failure.status in _REFUSALS else None


def without_refused(
    messages: "Sequence[BaseMessage]", tools: Sequence[Mapping[str, Any]], left_out: LeftOut
) -> "tuple[Sequence[BaseMessage], Sequence[Mapping[str, Any]]]":
    """Messages and functions as they are sent; the very same objects where nothing of them is left out."""
    if left_out.functions:
        tools = [tool for tool in tools if tool["function"]["name"] not in left_out.functions]
    if not (left_out.images or left_out.texts):
        return messages, tools
    return [_without(message, left_out) for message in messages], tools


def _without(message: "BaseMessage", left_out: LeftOut) -> "BaseMessage":
    changed: dict[str, Any] = {}
    references = image_references(message)
    if any(one["blob"] in left_out.images for one in references):
        kept = [one for one in references if one["blob"] not in left_out.images]
        changed["additional_kwargs"] = {**message.additional_kwargs, "images": kept}
        number = len(references) - len(kept)
        changed["content"] = f"{message.text}\n[{format_count(number, 'image')} not sent: the server refused it]"
    if message.text in left_out.texts:
        changed["content"] = "[not sent: the provider's content filter refused this text]"
    return message.model_copy(update=changed) if changed else message


# Functions

_SCHEMA = re.compile(r"schema|parameter|propert|declaration|\btools?\b[\[./]\d|function")
_INDEX = re.compile(r"\b(?:tools|functions)(?:\[|\.|/)(\d+)")
_TOO_MANY = re.compile(
    r"(?=.*\b(?:tools|functions)\b)(?=.*(?:\bmax|at most|up to|\blimit|too many|too long|exceed|more than))",
    re.DOTALL,
)
_NUMBER = re.compile(r"\b\d{1,4}\b")


def _without_named_functions(left_out: LeftOut, failure: Failure, request: "ModelRequest") -> Reduced | None:
    said = failure.server_message
    offered = _offered(left_out, request)
    if not _SCHEMA.search(said):
        return None
    named = [name for name in offered if re.search(rf"(?<![\w-]){re.escape(name.lower())}(?![\w-])", said)]
    # A name may be a word of the sentence, such as `task`: in quotes it is meant.
    quoted = [name for name in named if re.search(rf"['\"`]{re.escape(name.lower())}['\"`]", said)]
    by_index = [offered[int(one)] for one in _INDEX.findall(said) if int(one) < len(offered)]
    refused = quoted or by_index or [name for name in named if "_" in name]
    if not refused or not re.search(r"schema|invalid|parameter|propert|not (?:valid|supported)", said):
        return None
    note = f"The server refused {_functions(refused)}, left out from now on: {failure.message}"
    return Reduced(replace(left_out, functions=left_out.functions | set(refused)), note)


def _without_excess_functions(left_out: LeftOut, failure: Failure, request: "ModelRequest") -> Reduced | None:
    offered = _offered(left_out, request)
    if not _TOO_MANY.search(failure.server_message):
        return None
    limits = [int(one) for one in _NUMBER.findall(failure.server_message) if 1 <= int(one) < len(offered)]
    most = max(limits, default=_MOST_FUNCTIONS)
    excess = offered[most:]
    if not excess:
        return None
    note = (
        f"The server takes at most {most} tools: {_functions(excess)} left out. Choose the tools of a server with "
        "`tools` or `disabled_tools` under [mcp_servers.NAME]."
    )
    return Reduced(replace(left_out, functions=left_out.functions | set(excess)), note)


def _offered(left_out: LeftOut, request: "ModelRequest") -> list[str]:
    names = [str(tool["function"]["name"]) for tool in request.tools]
    return [name for name in names if name not in left_out.functions]


def _functions(names: Sequence[str]) -> str:
    return f"{'the tool' if len(names) == 1 else f'{len(names)} tools:'} {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"


# Images

_IMAGE = re.compile(r"image|picture|photo|vision|visual|media|multimodal|base64|data ur[il]|png|jpe?g|webp|gif")


def _without_images(left_out: LeftOut, failure: Failure, request: "ModelRequest") -> Reduced | None:
    """First only the newest image is sent, then none; an image that was refused is never sent again."""
    messages, _ = without_refused(request.messages, (), left_out)
    sent = named_images(messages)
    if not sent:
        return None
    refused = list(sent)[:-1] or list(sent)
    names = _shown([sent[one] for one in refused])
    reason = "The server refused a request with images as too large."
    note = f"{failure.message if failure.kind != 'too_long' else reason} Trying again without {names}."
    return Reduced(replace(left_out, images=left_out.images | set(refused)), note)


# Texts


def _without_filtered_text(left_out: LeftOut, failure: Failure, request: "ModelRequest") -> Reduced | None:
    """Leaves out the newest results of tools; after a message of the user, messages that never got an answer.

    The newest message itself is never replaced: an answer to nothing would help nobody.
    """
    if not CONTENT_FILTER.search(failure.server_message):
        return None
    newest = request.messages[-1]
    unanswered: list[str] = []
    for message in reversed(request.messages[:-1] if newest.type == "human" else request.messages):
        if message.type != newest.type:
            break
        unanswered.append(message.text)
    refused = {text for text in unanswered if text and text not in left_out.texts}
    if not refused:
        return None
    what = "results of tools" if newest.type == "tool" else "earlier messages without an answer"
    note = f"{failure.message} Trying again without {what} ({len(refused)})."
    return Reduced(replace(left_out, texts=left_out.texts | refused), note)
