"""Which model answers, and why, in words for the user. Asks nobody; of a local model reads the first bytes.

What models that are none are called, in the status line and wherever else they are told apart by it.

Whether the local model that is configured can be used at all. Looks at its first bytes, and loads nothing.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from graph_agent.config.paths import special_file_kind
from graph_agent.config.settings import ModelSettings, Settings

__all__ = [
    "CONNECT_HELP",
    "CONNECT_HELP_CHINESE",
    "CONNECT_HELP_SHORT",
    "INSTALL",
    "LOCAL_TAG",
    "MAGIC",
    "OFFLINE_LABEL",
    "ModelChoice",
    "choose_model",
    "display_address",
    "display_url",
    "local_label",
    "local_model_problem",
]

OFFLINE_LABEL = "offline command mode, no model"

MAGIC = b"GGUF"
"""What every file of the format begins with."""
INSTALL = "pip install '.[local]' in the checkout"
LOCAL_TAG = "(local, limited)"
"""Stands in the label of every local model."""

_RUNTIME = "xllamacpp"


def local_label(path: Path) -> str:
    """What the status line calls the model in this file."""
    return f"{path.stem} {LOCAL_TAG}"


def local_model_problem(path: Path) -> str:
    """What is in the way of using the model in this file, with what to do; empty where nothing is."""
    if kind := special_file_kind(path.expanduser()):
        return f"{str(path)!r} is {kind}, no file; `graph-agent model local FILE` names another"
    try:
        with path.expanduser().open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        return f"{str(path)!r} cannot be read ({error.strerror}); `graph-agent model local FILE` names another"
    if begins != MAGIC:
        return f"{str(path)!r} is no GGUF file; `graph-agent model local FILE` names another"
    if importlib.util.find_spec(_RUNTIME) is None:
        return f"its runtime is not installed: {INSTALL}"
    return ""


CONNECT_HELP = (
    "To connect a model: set OPENAI_API_KEY, or GRAPH_AGENT_BASE_URL for any OpenAI-compatible server "
    "(Ollama http://localhost:11434/v1, llama.cpp http://localhost:8080/v1, vLLM http://localhost:8000/v1, "
    "LM Studio http://localhost:1234/v1, OpenRouter https://openrouter.ai/api/v1); "
    "GRAPH_AGENT_MODEL names the model."
)
CONNECT_HELP_SHORT = (
    "To connect a model: OPENAI_API_KEY, or GRAPH_AGENT_BASE_URL for any\nOpenAI-compatible server; "
    "GRAPH_AGENT_MODEL names the model."
)
CONNECT_HELP_CHINESE = (
    "连接模型：设置 OPENAI_API_KEY，或用 GRAPH_AGENT_BASE_URL 指向兼容 OpenAI 的服务；"
    "\n用 GRAPH_AGENT_MODEL 指定模型。"
)
_NAME_ALONE = "the model name {!r} alone does not say where it is"
_CONNECT_ANOTHER = (
    "Another model: --model NAME or GRAPH_AGENT_MODEL. "
    "Another server: GRAPH_AGENT_BASE_URL, with its key in OPENAI_API_KEY."
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What stands behind the chat-model port in this process."""

    kind: Literal["endpoint", "factory", "local", "offline"]
    reason: str
    """One line: which model and why."""
    connect: str
    """How to connect another one."""
    obstacle: str = ""
    """Why the local model that is configured does not answer."""


def choose_model(settings: Settings) -> ModelChoice:
    """A configured endpoint always wins; without one the local model, where it can be used; else commands."""
    model = settings.model
    if model.factory is not None:
        return ModelChoice(
            "factory", f"Model: made by {model.factory}, because of model.factory.", _CONNECT_ANOTHER
        )
    if model.is_configured:
        return ModelChoice("endpoint", _endpoint_reason(settings), _CONNECT_ANOTHER)
    unset = "neither a base URL nor a key is set"
    obstacle = ""
    if model.local is not None:
        obstacle = local_model_problem(model.local)
        if not obstacle:
            return ModelChoice("local", _local_reason(model, model.local, settings.origins), CONNECT_HELP)
        unset = f"the local model cannot be used: {obstacle}"
    if model.name is not None:
        unset += f" ({_NAME_ALONE.format(model.name)})"
    return ModelChoice("offline", f"Model: {OFFLINE_LABEL}, because {unset}.", CONNECT_HELP, obstacle)


def display_url(url: str) -> str:
    """The address without a user name or password that may stand in it; empty for what is no address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def display_address(url: str) -> str:
    """As `display_url`, without what follows a question mark, where some servers take their key."""
    address, mark, _ = display_url(url).partition("?")
    return f"{address}?…" if mark else address


def _local_reason(model: ModelSettings, path: Path, origins: dict[str, str]) -> str:
    reason = f"Model: {local_label(path)}, because of {origins.get('model.local', 'the settings')}"
    return f"{reason}; {_NAME_ALONE.format(model.name)}." if model.name else f"{reason}."


def _endpoint_reason(settings: Settings) -> str:
    model, origins = settings.model, settings.origins
    cause = origins.get("model.base_url") or origins.get("model.api_key") or "the settings"
    if settings.profile:
        cause = f"the profile {settings.profile!r} ({origins.get('model.name', 'the settings')})"
    name = model.name or "not named (the only one, or your choice)"
    return f"Model: {name} at {display_url(model.endpoint)}, because of {cause}."
