"""Test a model: whether it answers, streams, calls tools, reads their results and sees images."""

import re
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph_agent.app.models import OpenedModel, open_model
from graph_agent.app.project_trust import settings_at
from graph_agent.config.model_choice import choose_model, display_url
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import with_model
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore, Learned
from graph_agent.model.openai.client import list_models
from graph_agent.model.openai.context_windows import ModelWindows
from graph_agent.model.openai.endpoint import ModelOptions, OpenAIModel
from graph_agent.ports import Delta, ModelRequest

__all__ = [
    "ImageProbe",
    "Listed",
    "ProbeResult",
    "forget_learned",
    "learned_about",
    "list_available_models",
    "red_square",
    "settings_with_model",
    "show_square",
    "try_model",
]

_SECRET = "violet-4711"  # noqa: S105 - a word that only the tool's result holds
_LOOK_UP = {
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
_READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file; images are shown.",
        "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    },
}
_ASK_ONE = "Call the tool look_up with the key alpha. Then answer with nothing but the value that it returns."
_ASK_TWO = "Call the tool look_up twice at once, in the same message: with the key alpha and with the key beta."
_LARGE_REQUEST = 10**9
_LONG_REQUEST = 16_000
"""Tokens; the long request of the test does not fit into a smaller context."""
_MAX_ATTEMPTS = 2
"""A test reports how an endpoint is now; waiting for a better one is for turns."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe."""

    name: str
    ok: bool
    detail: str
    matters: bool = True
    """Whether the agent cannot work without it."""
    setting: tuple[str, str | int] | None = None
    """What to add to the model's table because of it, if the settings do not say it yet."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The models to choose from."""

    profiles: tuple[str, ...]
    models: tuple[str, ...]
    """Of the endpoint in use."""
    error: str = ""
    """Why the endpoint's models are not known."""
    failed: bool = False
    """Whether there is an endpoint, which did not list them."""


def settings_with_model(workspace: Path, name: str | None) -> Settings:
    """The settings with the model of this name in use, else with the configured one.

    Raises:
        ConfigError: they cannot be read.
    """
    settings = settings_at(workspace)
    return settings if name is None else with_model(settings, name)


async def list_available_models(settings: Settings) -> Listed:
    """Profiles, and the models that the endpoint lists."""
    profiles = tuple(settings.models)
    if not settings.model.is_configured:
        return Listed(profiles, (), "no endpoint is configured")
    try:
        return Listed(profiles, await list_models(settings))
    except ModelError as failure:
        return Listed(profiles, (), str(failure), failed=True)


def learned_about(settings: Settings) -> tuple[Learned, ...]:
    """What error responses of the last day said about the model in use."""
    store = CapabilityStore(capabilities_file(settings.database))
    return store.learned(settings.model.endpoint, settings.model.name or "")


def forget_learned(settings: Settings) -> int:
    """Forget what was learned about the model in use; returns the number of capabilities."""
    store = CapabilityStore(capabilities_file(settings.database))
    return store.forget(settings.model.endpoint, settings.model.name or "")


async def try_model(settings: Settings) -> tuple[ProbeResult, ...]:
    """Ask the model a few short questions; stops when nothing further can succeed.

    Raises:
        UsageError: there is no endpoint, or no model is named and the endpoint has not exactly one.
    """
    choice, setting = choose_model(settings), settings.model
    if choice.kind != "endpoint":
        raise UsageError(f"{choice.reason} There is nothing to test.\n{choice.connect}")
    store = CapabilityStore(capabilities_file(settings.database))
    store.forget_truncation(setting.endpoint, setting.name or "")
    async with _open(settings) as model:
        found = await _probe_chat(model, settings)
        name = model.chosen.get("name", "")
    if len(found) == 1:
        return tuple(found)
    known = store.load(setting.endpoint, name)
    fails_to_call = any(one.name == "calls a tool" and not one.ok for one in found)
    if fails_to_call and setting.tool_protocol == "auto" and known.function_calling:
        await _retry_as_text(settings, found)
    if setting.images != "off" and setting.tool_protocol != "prompt" and known.function_calling:
        look = await show_square(setting, name)
        turn_off = ("images", "off") if look.is_blind and setting.images == "auto" else None
        found.append(ProbeResult("sees images", look.ok, look.detail, matters=False, setting=turn_off))
    fails = any(one.matters and not one.ok for one in found)
    store.note_test(setting.endpoint, setting.name or "", calls_tools=not fails)
    return tuple(_with_refusal(one, setting, known) for one in found)


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[OpenedModel]:
    model = await open_model(settings, may_choose_later=False, max_attempts=_MAX_ATTEMPTS)
    try:
        yield model
    finally:
        await model.close()


async def _probe_chat(model: OpenedModel, settings: Settings) -> list[ProbeResult]:
    """The results of all probes but the one of images; only the first if there is no answer."""
    pieces: list[Delta] = []
    question = HumanMessage("Answer with the one word: ready")
    try:
        reply = await model.reply(ModelRequest([question], ()), pieces.append)
    except ModelError as failure:
        return [ProbeResult("answers", ok=False, detail=str(failure))]
    texts, usage = sum(piece.kind == "text" for piece in pieces), reply.usage_metadata
    name = model.label.partition(" @ ")[0]
    used = f"{usage['total_tokens']} tokens reported" if usage else "not reported: tokens are estimated"
    tools = await _probe_tools(model)
    window = await ModelWindows(settings, model)(_LARGE_REQUEST)
    length = [await _probe_length(model)] if window.tokens >= _LONG_REQUEST else []
    size = ("context_window", window.tokens) if window.source in ("endpoint", "table") else None
    return [
        ProbeResult("answers", ok=True, detail=f"{name}, at {display_url(settings.model.endpoint)}"),
        ProbeResult("streams", texts > 1, f"{texts} pieces" if texts > 1 else "whole replies", matters=False),
        *tools,
        ProbeResult("usage", usage is not None, used, matters=False),
        ProbeResult(
            "window", ok=True, detail=f"{window.tokens:,} tokens ({window.source})", matters=False, setting=size
        ),
        *length,
    ]


async def _probe_length(model: OpenedModel) -> ProbeResult:
    """Whether the beginning of a long request reaches the model; some servers drop it silently."""
    filler = "".join(f"Line {number} of a long text that says nothing.\n" for number in range(1200))
    question = f"The code word is {_SECRET}.\n{filler}Answer with nothing but the code word."
    notes: list[str] = []

    def on_delta(delta: Delta) -> None:
        if delta.kind == "note":
            notes.append(delta.text)

    name, size = "reads a long request", f"{len(question) / 1000:.0f} KB"
    try:
        reply = await model.reply(ModelRequest([HumanMessage(question)], ()), on_delta)
    except ModelError as failure:
        return ProbeResult(name, ok=False, detail=f"{size}: {failure}", matters=False)
    if _SECRET in reply.text:
        return ProbeResult(name, ok=True, detail=f"it finds a word at the beginning of {size}", matters=False)
    counted = reply.usage_metadata["input_tokens"] if reply.usage_metadata else 0
    if notes and counted:
        return ProbeResult(name, ok=False, detail=notes[0], matters=False, setting=("context_window", counted))
    return ProbeResult(name, ok=False, detail=f"it does not find a word at the beginning of {size}", matters=False)


async def _probe_tools(model: OpenedModel) -> list[ProbeResult]:
    async def ask(*messages: BaseMessage) -> AIMessage:
        return await model.reply(ModelRequest(list(messages), (_LOOK_UP,)), lambda _: None)

    question = HumanMessage(_ASK_ONE)
    try:
        reply = await ask(question)
        if [call["name"] for call in reply.tool_calls] != ["look_up"]:
            return [ProbeResult("calls a tool", ok=False, detail="it answered without calling the tool")]
        call = reply.tool_calls[0]
        called = ProbeResult("calls a tool", ok=True, detail=f"look_up({call['args'].get('key', '')})")
        answer = await ask(
            question,
            AIMessage(reply.text, tool_calls=[{**call, "id": "call_1"}], response_metadata=reply.response_metadata),
            ToolMessage(_SECRET, tool_call_id="call_1", name="look_up"),
        )
        both = await ask(HumanMessage(_ASK_TWO))
    except ModelError as failure:
        return [ProbeResult("calls a tool", ok=False, detail=str(failure))]
    reads, count = _SECRET in answer.text, len(both.tool_calls)
    return [
        called,
        ProbeResult(
            "reads a result", reads, "its answer contains it" if reads else "its answer does not contain it"
        ),
        ProbeResult("calls two at once", count > 1, f"{count} in one message", matters=False),
    ]


async def _retry_as_text(settings: Settings, found: list[ProbeResult]) -> None:
    """Replace the result about calls by those with tools and calls as text, if these succeed."""
    as_text = settings.model.model_copy(update={"tool_protocol": "prompt"})
    async with _open(settings.model_copy(update={"model": as_text})) as model:
        called, *others = await _probe_tools(model)
    if called.ok:
        place = [one.name for one in found].index(called.name)
        detail = f"{called.detail}, written as text"
        found[place : place + 1] = [replace(called, detail=detail, setting=("tool_protocol", "prompt")), *others]


def _with_refusal(found: ProbeResult, model: ModelSettings, known: Capabilities) -> ProbeResult:
    """The result with a setting for what the endpoint refused on the way, if the settings leave that open."""
    if found.name == "streams" and not known.streaming and model.stream == "auto":
        return replace(found, setting=("stream", "off"))
    if found.name == "calls a tool" and not known.function_calling and model.tool_protocol == "auto":
        return replace(found, setting=("tool_protocol", "prompt"))
    return found


@dataclass(frozen=True, slots=True)
class ImageProbe:
    """The result of showing an image."""

    ok: bool
    detail: str
    is_blind: bool = False
    """The endpoint refused the image, or the answer ignores it; an error of another kind says neither."""


async def show_square(settings: ModelSettings, name: str) -> ImageProbe:
    """Ask for the colour of a red square; what the endpoint refuses meanwhile is not remembered."""
    call = {"name": "read_file", "args": {"file_path": "square.png"}, "id": "call_1"}
    image = {"blob": "square", "media_type": "image/png"}
    messages: list[BaseMessage] = [
        HumanMessage("Read square.png, then answer with the one word that names its colour."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("An image.", tool_call_id="call_1", name="read_file", additional_kwargs={"images": [image]}),
    ]
    deltas: list[Delta] = []
    model = OpenAIModel(settings, name, ModelOptions(load_image=lambda _: red_square()))
    try:
        reply = await model.reply(ModelRequest(messages, (_READ_FILE,)), deltas.append)
    except ModelError as failure:
        return ImageProbe(ok=False, detail=str(failure))
    finally:
        await model.close()
    if any(delta.kind == "note" for delta in deltas):
        return ImageProbe(ok=False, detail="the endpoint rejects them", is_blind=True)
    if re.search(r"\bred\b|红|紅", reply.text.lower()):
        return ImageProbe(ok=True, detail="it names the colour of one")
    return ImageProbe(ok=False, detail="it does not name the colour of one", is_blind=True)


def red_square(side: int = 32) -> bytes:
    """A PNG of some hundred bytes; some models refuse images of a few pixels."""
    rows = (b"\0" + b"\xff\0\0" * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
