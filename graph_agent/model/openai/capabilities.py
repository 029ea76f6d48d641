"""What an endpoint takes, and what a refusal says of it. Knows neither transport nor where this is kept.

What endpoints have shown that they take, kept in a small file for later processes. Losing it costs a request.
"""

import json
import logging
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import locked_folder, replace_text, special_file_kind
from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.errors import Failure
from graph_agent.model.openai.messages import has_images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from graph_agent.ports import ModelRequest


__all__ = ["Capabilities", "CapabilityStore", "configured", "relearned"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint has shown that it takes."""

    streams: bool = True
    counts_streams: bool = True
    """Takes `stream_options`, which asks for token counts at the end of a stream."""
    takes_null: bool = True
    """Takes null as the content beside calls; else an empty text is sent."""
    calls_functions: bool = True
    """Takes tools and their calls in fields of their own; else both are written out as text."""
    wants_reasoning: bool = False
    """Wants the thinking of earlier replies sent back."""
    wants_signatures: bool = False
    """Wants what stood beside the calls of earlier replies (`extra_content`) sent back."""
    sees: bool = True
    """Takes images."""


_MAY_MEAN_DIALECT = frozenset((400, 404, 405, 422, 500, 501))
_ABOUT_STREAMS = re.compile(
    r"\b(?:cannot|can't|not|unable|unsupported|without)\b.*\bstream"
    r"|\bstream(?:ing|ed)?\b.*\b(?:not|unsupported|disabled|false)\b",
    re.DOTALL,
)
_ABOUT_COUNTS = re.compile(r"stream_options|include_usage")
_ABOUT_REASONING = re.compile(
    r"(?:missing|must|required?|expected)[^.]{0,60}\breasoning(?:_content)?\b"
    r"|\breasoning_content\b[^.]{0,80}\b(?:missing|must|required?|expected)\b"
)
_ABOUT_SIGNATURES = re.compile(r"thought_?signature")
_ABOUT_IMAGES = re.compile(
    r"image|vision|multimodal|content\b[^.]{0,40}\b(?:must be|expected|should be) a? ?string"
)
"""Asked of a refused request that held images: what speaks of them there means them."""
_ABOUT_FUNCTIONS = re.compile(
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
"""How providers say that a model calls no functions. What only speaks of one bad tool or message is not meant."""


def configured(settings: ModelSettings, learned: Capabilities) -> Capabilities:
    """What was learned, where the settings leave it open."""
    streams = {"on": True, "off": False}.get(settings.stream, learned.streams)
    functions = {"native": True, "prompt": False}.get(settings.tool_protocol, learned.calls_functions)
    reasoning = {"always": True, "never": False}.get(settings.send_reasoning, learned.wants_reasoning)
    sees = {"on": True, "off": False}.get(settings.images, learned.sees)
    return replace(learned, streams=streams, calls_functions=functions, wants_reasoning=reasoning, sees=sees)


class _Lesson(NamedTuple):
    """What words of a refusal teach."""

    about: re.Pattern[str]
    field: str
    value: bool
    setting: str = ""
    """The setting that must leave it open, if there is one."""


_LESSONS = (
    _Lesson(_ABOUT_COUNTS, "counts_streams", value=False),
    _Lesson(_ABOUT_STREAMS, "streams", value=False, setting="stream"),
    _Lesson(_ABOUT_SIGNATURES, "wants_signatures", value=True),
    _Lesson(_ABOUT_REASONING, "wants_reasoning", value=True, setting="send_reasoning"),
    _Lesson(_ABOUT_IMAGES, "sees", value=False, setting="images"),
    _Lesson(_ABOUT_FUNCTIONS, "calls_functions", value=False, setting="tool_protocol"),
)
"""The first that fits and is not known yet is what the refusal meant."""


def relearned(
    dialect: Capabilities, failure: Failure, request: "ModelRequest", settings: ModelSettings
) -> Capabilities | None:
    """A dialect that the endpoint may take where it refused this one; None: it refused something else."""
    if failure.status not in _MAY_MEAN_DIALECT or failure.kind == "too_long":
        return None
    for lesson in _LESSONS:
        is_open = not lesson.setting or getattr(settings, lesson.setting) == "auto"
        is_new = _matters(lesson.field, dialect, request) and getattr(dialect, lesson.field) != lesson.value
        if is_open and is_new and lesson.about.search(failure.said):
            return replace(dialect, **{lesson.field: lesson.value})
    if dialect.takes_null and failure.kind == "final" and failure.status in (400, 422) and _bare(request.messages):
        return replace(dialect, takes_null=False)
    return None


def _matters(field: str, dialect: Capabilities, request: "ModelRequest") -> bool:
    """Whether the refused request had that at all."""
    match field:
        case "counts_streams":
            return dialect.streams
        case "calls_functions":
            return bool(request.tools)
        case "sees":
            return has_images(request.messages)
        case _:
            return True


def _bare(messages: "Sequence[BaseMessage]") -> bool:
    replies = [message for message in messages if isinstance(message, AIMessage)]
    return any(reply.tool_calls and not reply.text for reply in replies)


_log = logging.getLogger(__name__)
_MOST = 200
"""Models that are remembered; the one learned longest ago goes first."""
_LARGEST = 1_000_000
_NAMES = tuple(item.name for item in fields(Capabilities))


@dataclass(frozen=True, slots=True)
class CapabilityStore:
    """By address and model; only what differs from what every endpoint is first taken for."""

    path: Path | None = None
    """None remembers nothing."""

    def of(self, url: str, model: str) -> Capabilities:
        """What is known of this model; what nobody learned is as usual."""
        return _dialect(self._read().get(_key(url, model)))

    def keep(self, url: str, model: str, dialect: Capabilities) -> None:
        """Remember it. A file that cannot be written is no reason to stop: it is learned again."""
        if self.path is None:
            return
        try:
            with locked_folder(self.path.parent):
                known = self._read()
                known.pop(_key(url, model), None)
                if differing := _differing(dialect):
                    known[_key(url, model)] = differing
                newest = dict(list(known.items())[-_MOST:])
                replace_text(self.path, json.dumps(newest, indent=1, ensure_ascii=False) + "\n")
        except OSError:
            _log.warning("what %s takes could not be written to %s", model, self.path, exc_info=True)

    def _read(self) -> dict[str, Any]:
        path = self.path
        if path is None or special_file_kind(path):
            return {}
        try:
            if path.stat().st_size > _LARGEST:
                return {}
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def _key(url: str, model: str) -> str:
    return f"{model} @ {display_url(url)}"


def _differing(dialect: Capabilities) -> dict[str, bool]:
    usual = asdict(Capabilities())
    return {name: value for name, value in asdict(dialect).items() if value != usual[name]}


def _dialect(known: Any) -> Capabilities:
    told = known if isinstance(known, dict) else {}
    return Capabilities(**{name: told[name] for name in _NAMES if isinstance(told.get(name), bool)})
