"""What an endpoint supports: learned from its error responses, and stored for a day in a small file.

Only what the words of a response say is learned. A response about one image, one function or one message says
nothing about the model; `refusals` deals with those.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import locked_folder, replace_text, special_file_kind
from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.messages import has_images

if TYPE_CHECKING:
    from graph_agent.model.openai.errors import Failure
    from graph_agent.ports import ModelRequest


__all__ = [
    "Capabilities",
    "CapabilityStore",
    "Learned",
    "apply_settings",
    "changed_capabilities",
    "revise_capabilities",
    "suspect_null_content",
]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint supports and requires."""

    streaming: bool = True
    stream_usage: bool = True
    """Accepts `stream_options`, which asks for token counts at the end of a stream."""
    null_content: bool = True
    """Accepts null as the content beside calls; else an empty text is sent."""
    function_calling: bool = True
    """Accepts tools and their calls in fields of their own; else both are sent as text."""
    needs_reasoning: bool = False
    """Requires the reasoning of earlier replies to be sent back."""
    needs_signatures: bool = False
    """Requires what came beside the calls of earlier replies (`extra_content`) to be sent back."""
    images: bool = True
    response_schema: bool = True
    """Accepts `response_format` with a JSON Schema."""
    whole_requests: bool = True
    """Reads long requests whole. If not, its token counts show that it silently drops their beginning."""
    calls_tools: bool = True
    """Calls tools and uses their results, as a test of the model has found; no effect on requests."""

    @property
    def problem(self) -> tuple[str, str]:
        """What makes the model hard to use, and what to do about it; empty texts if nothing does."""
        if not self.calls_tools:
            return "could not use tools when it was tested", "`graph-agent model test` tests it again"
        if not self.whole_requests:
            wider = "raise its context length (Ollama: OLLAMA_CONTEXT_LENGTH), or set context_window under [model]"
            return "drops the beginning of long requests", wider
        return "", ""


_STATUSES = frozenset((400, 404, 405, 422, 500, 501))
"""Statuses of a response that may mean a missing capability."""
_STREAMING = re.compile(
    r"\b(?:cannot|can't|not|unable|unsupported|without)\b.*\bstream"
    r"|\bstream(?:ing|ed)?\b.*\b(?:not|unsupported|disabled|false)\b",
    re.DOTALL,
)
_STREAM_USAGE = re.compile(r"stream_options|include_usage")
_REASONING = re.compile(
    r"(?:missing|must|required?|expected)[^.]{0,60}\breasoning(?:_content)?\b"
    r"|\breasoning_content\b[^.]{0,80}\b(?:missing|must|required?|expected)\b"
)
_SIGNATURES = re.compile(r"thought_?signature")
_SIGHT = (
    r"(?:images|image_url|(?:image|visual|vision|picture)\s(?:inputs?|content|data|parts?|modality)"
    r"|vision|multi-?modal\s?\w*)"
)
_RESPONSE_SCHEMA = re.compile(r"response_format|json_schema|grammar|structured outputs?")
"""Only tested for requests that had a schema."""
_IMAGES = re.compile(
    # as in "this model does not support image input" and "no endpoints found that support image input"
    r"(?:not|n't|\bno\b[^.]{0,30}|\bun)\s?(?:able to )?(?:support|accept|process|handl|tak|see|allow)\w*"
    rf"\s(?:(?!with\b|in\b)\w+\s){{0,2}}{_SIGHT}(?!\s(?:format|type|size|of|from|with|url|larger|over|above)|\w)"
    # as in "image input is not supported" and "vision is not enabled for this model"
    rf"|\b{_SIGHT}(?:\s(?:capabilit\w+|support))?['\"`]?\s(?:(?:is|are)\s)?(?:currently\s)?"
    r"(?:not|n't|un)\s?(?:yet\s|currently\s)?(?:supported|enabled|available|allowed|permitted|implemented|accepted)"
    r"(?!\s(?:with|in|over|above|larger))"
    # as in "does not support image", "is not a multimodal model", "only supported by certain models"
    r"|\bdo(?:es)?(?: not|n't) support (?:an? )?(?:image|vision)\s*(?:$|[.,;:!])|\bnot a (?:multi-?modal|vision)"
    r"|\bimage_url\b[^.]{0,30}only supported by|\bat most 0 image|\btext-only model|\bmodel is text-only"
    r"|\bmissing (?:the )?(?:data required for|support for) (?:image|vision)"
    # where content may only be a text
    r"|unknown variant [`'\"]?image_url|content\b[^.]{0,40}\b(?:must be|expected|should be) a? ?(?:valid )?string"
)
"""How providers say that a model takes no images; only tested for requests that had some."""
_ANY_IMAGE = re.compile(r"image|vision|multimodal")
_FUNCTIONS = re.compile(
    # as in "does not support tools" and "no endpoints found that support tool use"
    r"(?:\bnot|n't|\bno\b[^.]{0,30}|\bun)\s?support\w*\s(?:\w+\s){0,2}(?:tools?|functions?)\b"
    # as in "tool calling is not supported with this model" and "function calling is not enabled"
    r"|\b(?:tools?|functions?)(?:[ _-](?:use|calls?|calling|choice))?['\"`]?\s(?:(?:is|are)\s)?(?:currently\s)?"
    r"(?:not|n't|un)\s?(?:yet\s|currently\s)?(?:supported|enabled|available|allowed|permitted|implemented)"
    # what vLLM and llama.cpp want switched on
    r"|\btool[ _]choice requires\b|\btools param requires\b|enable-auto-tool-choice"
    # as in "unrecognized request argument supplied: tools"
    r"|\b(?:unrecognized|unknown|unexpected|unsupported|invalid|extra)\s(?:\w+\s){0,4}?"
    r"(?:arguments?|fields?|param(?:eter)?s?|inputs?|propert(?:y|ies)|keys?|keyword)\b[^.]{0,60}?"
    r"(?<![\w.])(?:tools|functions|tool_choice)(?![\w.\[])"
)
"""How providers say that a model has no function calling; complaints about one bad tool or message do not match."""


class _Rule(NamedTuple):
    """What the words of an error response say about a capability."""

    pattern: re.Pattern[str]
    capability: str
    value: bool
    setting: str = ""
    """The setting that must be "auto", if there is one."""


_RULES = (
    _Rule(_RESPONSE_SCHEMA, "response_schema", value=False),
    _Rule(_STREAM_USAGE, "stream_usage", value=False),
    _Rule(_STREAMING, "streaming", value=False, setting="stream"),
    _Rule(_SIGNATURES, "needs_signatures", value=True),
    _Rule(_REASONING, "needs_reasoning", value=True, setting="send_reasoning"),
    _Rule(_IMAGES, "images", value=False, setting="images"),
    _Rule(_FUNCTIONS, "function_calling", value=False, setting="tool_protocol"),
)
"""The first rule that matches and says something new is taken."""


def apply_settings(settings: ModelSettings, learned: Capabilities) -> Capabilities:
    """The learned capabilities, overridden by the settings that are not "auto"."""
    return replace(
        learned,
        streaming={"on": True, "off": False}.get(settings.stream, learned.streaming),
        function_calling={"native": True, "prompt": False}.get(settings.tool_protocol, learned.function_calling),
        needs_reasoning={"always": True, "never": False}.get(settings.send_reasoning, learned.needs_reasoning),
        images={"on": True, "off": False}.get(settings.images, learned.images),
    )


def revise_capabilities(
    capabilities: Capabilities, failure: "Failure", request: "ModelRequest", settings: ModelSettings
) -> Capabilities | None:
    """Capabilities to try next, where the response says that one is missing; None: it says something else."""
    if failure.status not in _STATUSES or failure.kind == "too_long":
        return None
    said = failure.server_message
    sees = has_images(request.messages)
    # "Tools are not supported with streaming" says that one of both is missing: the one that is needed less goes.
    is_combined = ("stream" in said and capabilities.streaming) or (sees and _ANY_IMAGE.search(said) is not None)
    used = {
        "stream_usage": capabilities.streaming,
        "function_calling": bool(request.tools) and not is_combined,
        "images": sees,
        "response_schema": request.response_schema is not None,
    }
    for rule in _RULES:
        is_open = not rule.setting or getattr(settings, rule.setting) == "auto"
        is_new = used.get(rule.capability, True) and getattr(capabilities, rule.capability) != rule.value
        if is_open and is_new and rule.pattern.search(said):
            return replace(capabilities, **{rule.capability: rule.value})
    return None


def suspect_null_content(
    capabilities: Capabilities, failure: "Failure", request: "ModelRequest"
) -> Capabilities | None:
    """With empty text instead of null beside calls, where nothing else explains why the request was refused."""
    if not capabilities.null_content or failure.kind != "final" or failure.status not in (400, 422):
        return None
    has_null = any(getattr(one, "tool_calls", ()) and not one.text for one in request.messages)
    return replace(capabilities, null_content=False) if has_null else None


def changed_capabilities(known: Capabilities, current: Capabilities) -> dict[str, bool]:
    """What differs, by name."""
    return {name: getattr(current, name) for name in _NAMES if getattr(current, name) != getattr(known, name)}


_log = logging.getLogger(__name__)
_MAX_ENTRIES = 200
"""Models that are remembered; the oldest entry is dropped first."""
_MAX_BYTES = 1_000_000
_NAMES = tuple(item.name for item in fields(Capabilities))


_KEPT_FOR = timedelta(days=1)
"""How long something learned holds: servers are updated, and a refusal may have meant something else."""


class Learned(NamedTuple):
    """One capability that differs from what is assumed of an unknown endpoint."""

    name: str
    value: bool
    at: datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CapabilityStore:
    """A JSON file with what was learned in the last day, by model and address; losing it costs a request each."""

    path: Path | None = None
    """None stores nothing."""
    now: Callable[[], datetime] = _now

    def load(self, url: str, model: str) -> Capabilities:
        """What is known about this model."""
        return Capabilities(**{one.name: one.value for one in self.learned(url, model)})

    def learned(self, url: str, model: str) -> tuple[Learned, ...]:
        """What was learned about this model, and when."""
        return tuple(_learned(self._read().get(_key(url, model)), self.now()))

    def save(self, url: str, model: str, changes: Mapping[str, bool]) -> None:
        """Store what is new. A file that cannot be written is only logged, because it is learned again."""
        at = self.now().isoformat(timespec="seconds")
        entry = {name: {"value": value, "at": at} for name, value in changes.items()}

        def add(entries: dict[str, Any]) -> None:
            known = entries.pop(_key(url, model), None)
            entries[_key(url, model)] = {**(known if isinstance(known, dict) else {}), **entry}

        self._change(add)

    def forget(self, url: str, model: str) -> int:
        """Forget what was learned about this model; returns how many capabilities that were."""
        known = self.learned(url, model)
        self._change(lambda entries: entries.pop(_key(url, model), None))
        return len(known)

    def forget_truncation(self, url: str, model: str) -> None:
        """Forget that a model drops the beginning of long requests, so that a test finds out again."""
        if not self.load(url, model).whole_requests:
            self.save(url, model, {"whole_requests": True})

    def note_test(self, url: str, model: str, *, calls_tools: bool) -> None:
        """Store whether a test of the model could use tools."""
        if self.load(url, model).calls_tools != calls_tools:
            self.save(url, model, {"calls_tools": calls_tools})

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        if self.path is None:
            return
        try:
            with locked_folder(self.path.parent):
                entries = self._read()
                change(entries)
                newest = dict(list(entries.items())[-_MAX_ENTRIES:])
                replace_text(self.path, json.dumps(newest, indent=1, ensure_ascii=False) + "\n")
        except OSError:
            _log.warning("what endpoints support could not be written to %s", self.path, exc_info=True)

    def _read(self) -> dict[str, Any]:
        path = self.path
        if path is None or special_file_kind(path):
            return {}
        try:
            if path.stat().st_size > _MAX_BYTES:
                return {}
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def _learned(entry: Any, now: datetime) -> Iterator[Learned]:
    """What of an entry still holds; entries of earlier versions have no date, and are determined again."""
    for name, one in entry.items() if isinstance(entry, dict) else ():
        if name not in _NAMES or not isinstance(one, dict) or not isinstance(one.get("value"), bool):
            continue
        try:
            at = datetime.fromisoformat(str(one.get("at"))).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
        is_learned = one["value"] != getattr(Capabilities(), name)
        if is_learned and timedelta(0) <= now - at + _CLOCK_SKEW and now - at < _KEPT_FOR:
            yield Learned(name, one["value"], at)


_CLOCK_SKEW = timedelta(minutes=5)


def _key(url: str, model: str) -> str:
    return f"{model} @ {display_url(url)}"
