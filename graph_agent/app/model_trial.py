"""Test a model: whether it answers, streams, calls tools, reads their results and sees images."""

import re
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.app.models import ModelWindows, OpenedModel, open_model
from graph_agent.app.project_trust import settings_at
from graph_agent.config.model_choice import choose_model, display_url
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import with_model
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore
from graph_agent.model.openai.endpoint import ModelOptions, OpenAIModel
from graph_agent.ports import Delta, ModelRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "ImageProbe",
    "Listed",
    "ProbeResult",
    "list_available_models",
    "red_square",
    "settings_with_model",
    "show_square",
    "try_model",
]


def red_square(side: int = 32) -> bytes:
    """A PNG of some hundred bytes; some models refuse images of a few pixels."""
    rows = (b"\0" + b"\xff\0\0" * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


_TOOL_IMAGE_TRIAL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file; images are shown.",
        "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    },
}


@dataclass(frozen=True, slots=True)
class ImageProbe:
    """What came of it."""

    ok: bool
    detail: str
    is_blind: bool = False
    """The endpoint refused the image, or the answer knows nothing of it; an error of another kind says neither."""


async def show_square(settings: ModelSettings, name: str) -> ImageProbe:
    """Ask for the colour of a red square; what the endpoint refuses meanwhile is not remembered."""
    said: list[Delta] = []
    model = OpenAIModel(settings, name, ModelOptions(load_image=lambda _: red_square()))
    try:
        reply = await model.reply(ModelRequest(_conversation(), (_TOOL_IMAGE_TRIAL,)), said.append)
    except ModelError as failure:
        return ImageProbe(ok=False, detail=str(failure))
    finally:
        await model.close()
    if any(delta.kind == "note" and "images" in delta.text for delta in said):
        return ImageProbe(ok=False, detail="the endpoint refuses them", is_blind=True)
    if re.search(r"\bred\b|红|紅", reply.text.lower()):
        return ImageProbe(ok=True, detail="it tells the colour of one")
    return ImageProbe(ok=False, detail="it does not tell the colour of one", is_blind=True)


def _conversation() -> list["BaseMessage"]:
    call = {"name": "read_file", "args": {"file_path": "square.png"}, "id": "call_1"}
    image = {"blob": "square", "media_type": "image/png"}
    return [
        HumanMessage("Read square.png, then answer with the one word that names its colour."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("An image.", tool_call_id="call_1", name="read_file", additional_kwargs={"images": [image]}),
    ]


_SECRET = "violet-4711"  # noqa: S105 - a word that only the tool's result holds
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a key up and returns its value.",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string", "description": "The key."}},
            "required": ["key"],
        },
    },
}
_ONE = "Call the tool look_up with the key alpha. Then answer with nothing but the value that it returns."
_TWO = "Call the tool look_up twice at once, in the same message: with the key alpha and with the key beta."
_ALL_WINDOW = 10**9
_MOST_TRIES = 2
"""A trial tells how an endpoint is now; waiting for a better one is for turns."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe found."""

    name: str
    ok: bool
    detail: str
    matters: bool = True
    """Whether the agent cannot work without it."""
    setting: tuple[str, str | int] | None = None
    """What belongs into the model's table because of it, where the settings do not say it yet."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What there is to choose from."""

    profiles: tuple[str, ...]
    models: tuple[str, ...]
    """Of the endpoint in use."""
    error: str = ""
    """Why the endpoint's models are not known."""
    failed: bool = False
    """Whether there is an endpoint, which did not tell them."""


def settings_with_model(workspace: Path, name: str | None) -> Settings:
    """The settings with the model of this name in use, else with the configured one.

    Raises:
        ConfigError: they cannot be read.
    """
    settings = settings_at(workspace)
    return settings if name is None else with_model(settings, name)


async def list_available_models(settings: Settings) -> Listed:
    """Profiles, and the models of the endpoint as far as it tells them."""
    profiles = tuple(settings.models)
    if not settings.model.is_configured:
        return Listed(profiles, (), "no endpoint is configured")
    from graph_agent.model.openai.client import list_models  # noqa: PLC0415 - loads what speaks to endpoints

    try:
        return Listed(profiles, await list_models(settings))
    except ModelError as failure:
        return Listed(profiles, (), str(failure), failed=True)


async def try_model(settings: Settings) -> tuple[ProbeResult, ...]:
    """Ask the model a few short questions; stops where nothing further can succeed.

    Raises:
        UsageError: there is no endpoint, or no model is named and the endpoint has not exactly one.
    """
    if choose_model(settings).kind != "endpoint":
        raise UsageError(choose_model(settings).reason + " There is nothing to test.")
    async with _opened(settings) as model:
        found = await _tried(model, settings)
        named = model.chosen.get("name", "")
    if len(found) == 1:
        return found
    known = CapabilityStore(capabilities_file(settings.database)).load(settings.model.endpoint, named)
    if _fails_to_call(found) and settings.model.tool_protocol == "auto" and known.function_calling:
        found = await _tried_as_text(settings, found)
    found += await _with_an_image(settings, named, known)
    return tuple(_with_learned(one, settings, known) for one in found)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[OpenedModel]:
    model = await open_model(settings, may_choose_later=False, max_attempts=_MOST_TRIES)
    try:
        yield model
    finally:
        await model.close()


async def _tried(model: OpenedModel, settings: Settings) -> tuple[ProbeResult, ...]:
    pieces: list[Delta] = []
    try:
        reply = await model.reply(_asking([HumanMessage("Answer with the one word: ready")]), pieces.append)
    except ModelError as failure:
        return (ProbeResult("answers", ok=False, detail=str(failure)),)
    address = display_url(settings.model.endpoint)
    texts = sum(piece.kind == "text" for piece in pieces)
    usage = reply.usage_metadata
    return (
        ProbeResult("answers", ok=True, detail=f"{model.label}, at {address}"),
        ProbeResult("streams", texts > 1, f"{texts} pieces" if texts > 1 else "whole replies", matters=False),
        *await _with_tools(model),
        ProbeResult(
            "usage",
            usage is not None,
            f"{usage['total_tokens']} tokens told" if usage else "not told: tokens are estimated",
            matters=False,
        ),
        await _window(model, settings),
    )


async def _window(model: OpenedModel, settings: Settings) -> ProbeResult:
    window = await ModelWindows(settings, model)(_ALL_WINDOW)
    is_known = window.source in ("endpoint", "table")
    detail = f"{window.tokens:,} tokens ({window.source})"
    setting = ("context_window", window.tokens) if is_known else None
    return ProbeResult("window", ok=True, detail=detail, matters=False, setting=setting)


async def _tried_as_text(settings: Settings, found: tuple[ProbeResult, ...]) -> tuple[ProbeResult, ...]:
    """The findings with those about calls made anew, tools and calls as text, where that succeeds."""
    text = settings.model.model_copy(update={"tool_protocol": "prompt"})
    async with _opened(settings.model_copy(update={"model": text})) as model:
        again = await _with_tools(model)
    if not again[0].ok:
        return found
    called = replace(again[0], detail=f"{again[0].detail}, written as text", setting=("tool_protocol", "prompt"))
    before = [one.name for one in found].index(called.name)
    return (*found[:before], called, *again[1:], *found[before + 1 :])


def _fails_to_call(found: Sequence[ProbeResult]) -> bool:
    return any(one.name == "calls a tool" and not one.ok for one in found)


def _with_learned(found: ProbeResult, settings: Settings, known: Capabilities) -> ProbeResult:
    """The finding with what the endpoint refused on the way, where the settings leave that open."""
    model = settings.model
    if found.name == "streams" and not known.streaming and model.stream == "auto":
        return replace(found, setting=("stream", "off"))
    if found.name == "calls a tool" and not known.function_calling and model.tool_protocol == "auto":
        return replace(found, setting=("tool_protocol", "prompt"))
    return found


async def _with_tools(model: OpenedModel) -> tuple[ProbeResult, ...]:
    asked: list[BaseMessage] = [HumanMessage(_ONE)]
    try:
        reply = await model.reply(_asking(asked, _TOOL), _unseen)
        if [call["name"] for call in reply.tool_calls] != ["look_up"]:
            return (ProbeResult("calls a tool", ok=False, detail="it answered without the call it was asked for"),)
        called = ProbeResult(
            "calls a tool", ok=True, detail=f"look_up({reply.tool_calls[0]['args'].get('key', '')})"
        )
        answer = await model.reply(_asking([*asked, *_answered(reply)], _TOOL), _unseen)
        both = await model.reply(_asking([HumanMessage(_TWO)], _TOOL), _unseen)
    except ModelError as failure:
        return (ProbeResult("calls a tool", ok=False, detail=str(failure)),)
    reads, count = _SECRET in answer.text, len(both.tool_calls)
    return (
        called,
        ProbeResult("reads a result", reads, "its answer holds it" if reads else "its answer does not hold it"),
        ProbeResult("calls two at once", count > 1, f"{count} in one message", matters=False),
    )


async def _with_an_image(settings: Settings, name: str, known: Capabilities) -> tuple[ProbeResult, ...]:
    """Nothing where images cannot be sent, or are not to be."""
    model = settings.model
    if model.images == "off" or model.tool_protocol == "prompt" or not known.function_calling:
        return ()
    look = await show_square(model, name)
    is_open = look.is_blind and model.images == "auto"
    setting = ("images", "off") if is_open else None
    return (ProbeResult("sees images", look.ok, look.detail, matters=False, setting=setting),)


def _answered(reply: AIMessage) -> list["BaseMessage"]:
    call = {**reply.tool_calls[0], "id": "call_1"}
    return [
        AIMessage(reply.text, tool_calls=[call], response_metadata=reply.response_metadata),
        ToolMessage(_SECRET, tool_call_id="call_1", name="look_up"),
    ]


def _asking(messages: Sequence["BaseMessage"], *tools: dict[str, Any]) -> ModelRequest:
    return ModelRequest(messages, tools)


def _unseen(_: Delta) -> None:
    """The finished reply is all that counts."""
