"""Which model answers, and why, in words for the user. No server is asked; of a local file only the start is read.

Also how models and addresses are shown, and whether the configured local model can be used.
"""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from graph_agent.config.paths import special_file_kind
from graph_agent.config.settings import Settings

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
    "display_url",
    "is_key_in_path",
    "local_label",
    "local_model_problem",
]

OFFLINE_LABEL = "offline mode, no model"
LOCAL_TAG = "(local, limited)"
"""In the label of every local model."""
MAGIC = b"GGUF"
"""The first bytes of every file of the format."""
INSTALL = "pip install '.[local]' in the checkout"
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
_KEY_IN_PATH = re.compile(
    r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}|[A-Za-z0-9]{24,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)[\w.~-]{20,}$"
)
_CONNECT_ANOTHER = (
    "Another model: --model NAME or GRAPH_AGENT_MODEL. "
    "Another server: GRAPH_AGENT_BASE_URL, with its key in OPENAI_API_KEY."
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The kind of model that answers in this process."""

    kind: Literal["endpoint", "factory", "local", "offline"]
    reason: str
    """One line: which model and why."""
    connect: str
    """How to connect another one."""
    obstacle: str = ""
    """Why the local model that is configured does not answer."""

    @property
    def headline(self) -> str:
        """What the chat begins with: which model answers; without one, how to connect one."""
        if self.kind != "offline":
            return self.reason
        begin = f"{self.reason.partition(' Offline mode')[0]} " if self.obstacle else "No model connected. "
        return (
            f"{begin}Set OPENAI_API_KEY, or GRAPH_AGENT_BASE_URL for a local server, then start again. "
            "Until then only a few commands work: type `help`."
        )


def choose_model(settings: Settings) -> ModelChoice:
    """A factory or a configured endpoint comes first; then the local model, if usable; else offline commands."""
    model, origins = settings.model, settings.origins
    if model.factory is not None:
        reason = f"Model: made by {model.factory}, set by model.factory."
        return ModelChoice("factory", reason, _CONNECT_ANOTHER)
    if model.is_configured:
        cause = origins.get("model.base_url") or origins.get("model.api_key") or "the settings"
        if settings.profile:
            cause = f"the profile {settings.profile!r} ({origins.get('model.name', 'the settings')})"
        name = model.name or "not named (the only one, or your choice)"
        reason = f"Model: {name} at {display_url(model.endpoint)}, set by {cause}."
        return ModelChoice("endpoint", reason, _CONNECT_ANOTHER)
    unset, obstacle = "neither a base URL nor a key is set", ""
    ambiguity = f"the model name {model.name!r} alone does not say where it is"
    if model.local is not None:
        obstacle = local_model_problem(model.local)
        if not obstacle:
            cause = origins.get("model.local", "the settings")
            reason = f"Model: {local_label(model.local)}, set by {cause}"
            return ModelChoice("local", f"{reason}; {ambiguity}." if model.name else f"{reason}.", CONNECT_HELP)
        unset = f"the local model cannot be used: {obstacle}"
    if model.name is not None:
        unset += f" ({ambiguity})"
    return ModelChoice(
        "offline", f"No model is connected: {unset}. Offline mode runs simple commands.", CONNECT_HELP, obstacle
    )


def local_label(path: Path) -> str:
    """What the status line calls the model in this file."""
    return f"{path.stem} {LOCAL_TAG}"


def local_model_problem(path: Path) -> str:
    """Why the model in this file cannot be used, and what to do; empty if it can."""
    problem = ""
    if kind := special_file_kind(path.expanduser()):
        problem = f"is {kind}, not a file"
    else:
        try:
            with path.expanduser().open("rb") as file:
                problem = "" if file.read(len(MAGIC)) == MAGIC else "is not a GGUF file"
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
    if problem:
        return f"{str(path)!r} {problem}; choose another with `graph-agent model local FILE`"
    return "" if importlib.util.find_spec("xllamacpp") else f"its runtime is not installed: {INSTALL}"


def display_url(url: str) -> str:
    """An address without what may be secret: credentials, query, and parts of the path that look like keys.

    Empty if it is no address.
    """
    try:
        parts = urlsplit(url)
        is_whole = "@" not in parts.path  # As after a password that has a slash in it.
    except ValueError:
        is_whole = False
    if not is_whole:
        scheme, mark, _ = url.partition("://")
        return f"{scheme}://…" if mark and scheme.isalnum() else ""
    path = "/".join("…" if is_key_in_path(part) else part for part in parts.path.split("/"))
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=path, query="", fragment="").geturl()
    return f"{shown}?…" if parts.query else shown


def is_key_in_path(part: str) -> bool:
    """Whether a part of an address's path looks random, as the keys do that some services put there."""
    return _KEY_IN_PATH.search(part) is not None
