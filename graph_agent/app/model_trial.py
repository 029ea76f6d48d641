"""Tries a model out: is it reached, does it stream, does it call tools and read what they bring back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.app.models import OpenedModel, open_model
from graph_agent.app.project import settings_at
from graph_agent.app.windows import ModelWindows
from graph_agent.config.choice import choose_model, shown_url
from graph_agent.config.profiles import with_model
from graph_agent.config.settings import Settings
from graph_agent.errors import ModelError, UsageError
from graph_agent.ports import Delta, ModelRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Finding", "Listed", "list_all", "settings_of", "try_model"]

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


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe found."""

    name: str
    ok: bool
    detail: str
    matters: bool = True
    """Whether the agent cannot work without it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What there is to choose from."""

    profiles: tuple[str, ...]
    models: tuple[str, ...]
    """Of the endpoint in use."""
    error: str = ""
    """Why the endpoint's models are not known."""


def settings_of(workspace: Path, name: str | None) -> Settings:
    """The settings with the model of this name in use, else with the configured one.

    Raises:
        ConfigError: they cannot be read.
    """
    settings = settings_at(workspace)
    return settings if name is None else with_model(settings, name)


async def list_all(settings: Settings) -> Listed:
    """Profiles, and the models of the endpoint as far as it tells them."""
    profiles = tuple(settings.models)
    if not settings.model.is_configured:
        return Listed(profiles, (), "no endpoint is configured")
    from graph_agent.model.names import list_models  # noqa: PLC0415 - loads what speaks to endpoints

    try:
        return Listed(profiles, await list_models(settings))
    except ModelError as failure:
        return Listed(profiles, (), str(failure))


async def try_model(settings: Settings) -> tuple[Finding, ...]:
    """Ask the model a few short questions; stops where nothing further can succeed.

    Raises:
        UsageError: there is no endpoint, or no model is named and the endpoint has not exactly one.
    """
    if choose_model(settings).kind != "endpoint":
        raise UsageError(choose_model(settings).reason + " There is nothing to test.")
    model = await open_model(settings, may_choose_later=False)
    try:
        return await _tried(model, settings)
    finally:
        await model.close()


async def _tried(model: OpenedModel, settings: Settings) -> tuple[Finding, ...]:
    pieces: list[Delta] = []
    try:
        reply = await model.reply(_asking([HumanMessage("Answer with the one word: ready")]), pieces.append)
    except ModelError as failure:
        return (Finding("answers", ok=False, detail=str(failure)),)
    address = shown_url(settings.model.endpoint)
    texts = sum(piece.kind == "text" for piece in pieces)
    usage = reply.usage_metadata
    window = await ModelWindows(settings, model)(_ALL_WINDOW)
    return (
        Finding("answers", ok=True, detail=f"{model.label}, at {address}"),
        Finding("streams", texts > 1, f"{texts} pieces" if texts > 1 else "whole replies", matters=False),
        *await _with_tools(model),
        Finding(
            "usage",
            usage is not None,
            f"{usage['total_tokens']} tokens told" if usage else "not told: tokens are estimated",
            matters=False,
        ),
        Finding("window", ok=True, detail=f"{window.tokens:,} tokens ({window.source})", matters=False),
    )


async def _with_tools(model: OpenedModel) -> tuple[Finding, ...]:
    asked: list[BaseMessage] = [HumanMessage(_ONE)]
    try:
        reply = await model.reply(_asking(asked, _TOOL), _unseen)
        if [call["name"] for call in reply.tool_calls] != ["look_up"]:
            return (Finding("calls a tool", ok=False, detail="it answered without the call it was asked for"),)
        called = Finding("calls a tool", ok=True, detail=f"look_up({reply.tool_calls[0]['args'].get('key', '')})")
        answer = await model.reply(_asking([*asked, *_answered(reply)], _TOOL), _unseen)
        both = await model.reply(_asking([HumanMessage(_TWO)], _TOOL), _unseen)
    except ModelError as failure:
        return (Finding("calls a tool", ok=False, detail=str(failure)),)
    reads, count = _SECRET in answer.text, len(both.tool_calls)
    return (
        called,
        Finding("reads a result", reads, "its answer holds it" if reads else "its answer does not hold it"),
        Finding("calls two at once", count > 1, f"{count} in one message", matters=False),
    )


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
