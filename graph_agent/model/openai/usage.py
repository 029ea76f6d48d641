"""Reads the token counts of a server, under all the names that servers use for them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages.ai import UsageMetadata

__all__ = ["latest_usage", "parse_usage"]

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_CACHED = (("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens"))
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens"))
_MAX = 2**53
"""No request is that long: a larger number is an error, and may not fit where it is stored."""


def latest_usage(body: Mapping[str, Any], earlier: UsageMetadata | None) -> UsageMetadata | None:
    """The usage after one more chunk. Each chunk counts from the beginning; one without counts changes nothing."""
    return next(filter(None, map(parse_usage, _usage_fields(body))), earlier)


def parse_usage(usage: Any) -> UsageMetadata | None:
    """The counts if both input and output are given, since one alone would pass for the whole."""
    if not isinstance(usage, Mapping):
        return None
    total = _count(usage.get("total_tokens"))
    given_input, given_output = _first(usage, _INPUT), _first(usage, _OUTPUT)
    input_tokens = _remainder(given_input, total, given_output)
    output_tokens = _remainder(given_output, total, input_tokens)
    if not input_tokens or output_tokens is None:
        return None
    counts: dict[str, Any] = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": max(total or 0, input_tokens + output_tokens),
    }
    if cached := _nested(usage, _CACHED) or _first(usage, ("prompt_cache_hit_tokens",)):
        counts["input_token_details"] = {"cache_read": min(cached, input_tokens)}
    if reasoning := _nested(usage, _REASONING):
        counts["output_token_details"] = {"reasoning": reasoning}
    return cast("UsageMetadata", counts)


def _usage_fields(body: Mapping[str, Any]) -> Iterator[Any]:
    """Where the usage may be: at the top, within the choice, or in a field of one provider."""
    yield body.get("usage")
    choices = body.get("choices")
    places = [*(choices if isinstance(choices, list) else ()), body.get("x_groq")]
    yield from (place.get("usage") for place in places if isinstance(place, Mapping))


def _remainder(known: int | None, total: int | None, other: int | None) -> int | None:
    """One part, computed from the total where only the other part is given."""
    if known is not None or total is None or other is None:
        return known
    return max(total - other, 0)


def _first(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(usage.get(name))) is not None), None)


def _nested(usage: Mapping[str, Any], places: tuple[tuple[str, str], ...]) -> int | None:
    counts = (_count(inner.get(name)) for key, name in places if isinstance(inner := usage.get(key), Mapping))
    return next((count for count in counts if count), None)


def _count(value: Any) -> int | None:
    """A number of tokens, also where it is sent as a text or as a float without a fraction."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= _MAX and value == int(value) else None
