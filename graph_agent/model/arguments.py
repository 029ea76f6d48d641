"""Reads the arguments of a call as models really send them. Knows no tool and no stream."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Arguments", "read_arguments", "repaired"]

_MAX_WRAPPINGS = 3
"""How often an object may be encoded into a string of itself."""

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)

_MARKERS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</\w{1,40}>))+\s*\Z")
"""Tokens that end a call in a model's own format, left standing by servers that should have taken them away."""

_INT64 = range(-(2**63), 2**64)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Decoded arguments; `{}` with a complaint where they cannot be used."""

    value: dict[str, Any] = field(default_factory=dict)
    complaint: str = ""
    """Why they cannot be used, in words for the model; empty when they can."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def read_arguments(raw: Any) -> Arguments:
    """Arguments that arrive as text, as text of text, as an object, or not at all (which is no arguments)."""
    for _ in range(_MAX_WRAPPINGS):
        if isinstance(raw, dict):
            return _checked(raw)
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return Arguments()
        if not isinstance(raw, str):
            break
        try:
            raw = _decoded(raw)
        except (ValueError, RecursionError) as error:
            return Arguments(complaint=f"the arguments are not valid JSON ({error}); send one JSON object")
    if isinstance(raw, dict):
        return _checked(raw)
    return Arguments(complaint=f"the arguments are {_kind(raw)}, not a JSON object; send one JSON object")


def repaired(text: str) -> str:
    """The text with surrogate halves joined, and single ones replaced: UTF-8 has no place for them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(text: str) -> Any:
    """The one value of the text. Servers put an empty object before the real one, and send the whole once more."""
    fenced = _FENCED.fullmatch(text)
    told = _MARKERS.sub("", fenced[1] if fenced else text)
    try:
        return _DECODER.decode(told)
    except json.JSONDecodeError:
        values = _values(told)
        if not values or any(value != values[0] for value in values):
            raise
        return values[0]


def _values(text: str) -> list[Any]:
    """What values follow one another, empty objects left out; none where what follows is no value."""
    values: list[Any] = []
    while text := text.strip():
        try:
            value, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError:
            return []
        values.append(value)
        text = text[end:]
    return [value for value in values if value != {}]


def _checked(value: dict[str, Any]) -> Arguments:
    try:
        return Arguments({repaired(key): _storable(item) for key, item in value.items()})
    except (ValueError, RecursionError) as error:
        return Arguments(complaint=f"the arguments cannot be taken: {error}")


def _storable(value: Any) -> Any:
    match value:
        case str():
            return repaired(value)
        case bool():
            return value
        case int() if value not in _INT64:
            raise ValueError(f"the number {str(value)[:40]} does not fit into 64 bits")
        case float() if value in (float("inf"), float("-inf")):
            raise ValueError("a number is too large")
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {repaired(key): _storable(item) for key, item in value.items()}
        case _:
            return value


def _kind(value: Any) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a string within strings"
        case bool():
            return "true or false"
        case _:
            return "a number"
