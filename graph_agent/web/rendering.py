"""Templates, and what they show values with. All text is made visible and escaped here, whatever they do."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from graph_agent.calls import question_and_options
from graph_agent.inspect import CallView, answer_words, call_end
from graph_agent.inspect.transcript import diff_line_kind, format_utc
from graph_agent.ports.usage import format_usage, usage_report
from graph_agent.wording import APPROVAL, RECOVERY, RULES, SCOPES, escape, format_count, mixed_alphabets

__all__ = [
    "DiffLine",
    "Excerpt",
    "arguments_of",
    "diff_lines",
    "editable_json",
    "excerpt",
    "json_in_form",
    "render",
    "static_file",
    "static_names",
]

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
_MAX_CHARS = 4_000
_MAX_LINES = 120


def render(template: str, values: Mapping[str, Any]) -> Markup:
    """A template with values, as safe HTML."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - autoescape is always on


def _visible(value: Any) -> Any:
    """Invisible and direction-changing characters written out; markup of our own templates stays as it is."""
    if isinstance(value, Markup):
        return value
    return escape(value, multiline=True) if isinstance(value, str) else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("graph_agent.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "answer_words": answer_words,
        "count": format_count,
        "editable": editable_json,
        "cut": _cut_diff,
        "excerpt": excerpt,
        "json": lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
        "quoted": json_in_form,
        "outcome": lambda record: call_end(record).phrase.replace("_", " "),
        "usage": lambda stored: format_usage(usage_report(stored)),
        "utc": format_utc,
        "words": lambda text: str(text).replace("_", " "),
    }
    environment.globals |= {
        "APPROVAL": {choice.key: choice for choice in APPROVAL},
        "RECOVERY": {choice.key: choice for choice in RECOVERY},
        "RULES": {choice.words[0]: choice for choice in RULES},
        "SCOPES": {choice.words[0] if choice.words else choice.label: choice for choice in SCOPES},
        "arguments_of": arguments_of,
        "diff_of": _diff_of,
        "mixed_alphabets": mixed_alphabets,
        "question_of": lambda view: question_and_options(view.record),
        "static": _static_address,
    }
    return environment


class DiffLine(NamedTuple):
    """One line of a unified diff."""

    kind: str
    text: str


class Excerpt(NamedTuple):
    """The beginning of a text."""

    text: str
    left_out: int
    """How many lines are missing; one that is cut short counts."""


def excerpt(text: str, most_lines: int = _MAX_LINES, most_chars: int = _MAX_CHARS) -> Excerpt:
    """At most so much of a text, whole lines where possible."""
    lines = text.removesuffix("\n").split("\n")
    kept = "\n".join(lines[:most_lines])
    if len(kept) > most_chars:
        kept = kept[:most_chars]
        kept = kept[: kept.rfind("\n")] if "\n" in kept else f"{kept}…"
    shown = kept.count("\n") + 1
    is_cut = kept.endswith("…") and not text.startswith(kept)
    return Excerpt(kept, len(lines) - shown + is_cut)


def _diff_of(view: CallView) -> list[DiffLine]:
    """The change that a call proposes or made, line by line; empty if none is known."""
    preview = view.record.get("preview") or {}
    made = (view.record.get("metadata") or {}).get("diff")
    text = str(made.get("unified") or "") if isinstance(made, dict) else ""
    if not text and preview.get("kind") == "diff" and view.record.get("status") != "success":
        text = str(preview.get("text") or "")
    return diff_lines(text)


def diff_lines(text: str) -> list[DiffLine]:
    """The lines of a unified diff."""
    return [DiffLine(diff_line_kind(line), line) for line in text.removesuffix("\n").split("\n")] if text else []


def _cut_diff(lines: Sequence[DiffLine], most_lines: int, most_chars: int = 40_000) -> tuple[list[DiffLine], int]:
    """The beginning of a diff, and how many of its lines are missing."""
    shown: list[DiffLine] = []
    size = 0
    for line in lines[:most_lines]:
        size += len(line.text)
        if shown and size > most_chars:
            break
        shown.append(line._replace(text=f"{line.text[:most_chars]}…") if len(line.text) > most_chars else line)
    return shown, len(lines) - len(shown)


def arguments_of(view: CallView) -> Iterator[tuple[str, str]]:
    """The arguments by name, texts as they are and other values as JSON."""
    for name, value in (view.record.get("arguments") or {}).items():
        yield str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def editable_json(value: Any) -> Markup:
    """JSON to edit in a form: what cannot be seen is written as an escape of JSON, which means the same."""
    return json_in_form(json.dumps(value, indent=2, ensure_ascii=False))


def json_in_form(text: str) -> Markup:
    """JSON text as the value of a field, which comes back with the same meaning."""
    pieces = (one if one == "\n" or escape(one) == one else _escaped(one) for one in text)
    return Markup.escape("".join(pieces))


def _escaped(character: str) -> str:
    units: Sequence[int] = memoryview(character.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(f"\\u{unit:04x}" for unit in units)


@cache
def static_names() -> frozenset[str]:
    """The files that pages may load."""
    folder = files("graph_agent.web") / "static"
    names = {entry.name for entry in folder.iterdir() if entry.is_file()}
    return frozenset(names | {f"vendor/{entry.name}" for entry in (folder / "vendor").iterdir() if entry.is_file()})


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Content and media type of one of these."""
    data = files("graph_agent.web").joinpath("static", *name.split("/")).read_bytes()
    return data, _TYPES[name.rpartition(".")[2]]


@cache
def _static_address(name: str) -> str:
    """Where a page loads it from; the address changes with the content, so that browsers may keep it forever."""
    return f"/static/{name}?v={hashlib.sha256(static_file(name)[0]).hexdigest()[:12]}"
