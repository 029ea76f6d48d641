"""What a server says that a reply used, under all names that there are for it. Knows no price and no estimate."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages.ai import UsageMetadata

__all__ = ["newest_usage", "usage_in"]

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_CACHED = (("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens"))
_THOUGHT = (("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens"))
_MOST = 2**53
"""No request is that long; a number beyond it says nothing, and may not fit where it is stored."""


def newest_usage(body: Mapping[str, Any], earlier: UsageMetadata | None) -> UsageMetadata | None:
    """What is known after one more chunk: each counts from the beginning, one that tells nothing is passed over."""
    return next(filter(None, map(usage_in, _told(body))), earlier)


def usage_in(told: Any) -> UsageMetadata | None:
    """The counts, where input and output are both told; half of them would be taken for all."""
    if not isinstance(told, Mapping):
        return None
    total = _count(told.get("total_tokens"))
    into, out = _first(told, _INPUT), _first(told, _OUTPUT)
    into, out = _rest(into, total, out), _rest(out, total, into)
    if not into or out is None:
        return None
    usage: dict[str, Any] = {
        "input_tokens": into,
        "output_tokens": out,
        "total_tokens": max(total or 0, into + out),
    }
    if cached := _within(told, _CACHED) or _first(told, ("prompt_cache_hit_tokens",)):
        usage["input_token_details"] = {"cache_read": min(cached, into)}
    if thought := _within(told, _THOUGHT):
        usage["output_token_details"] = {"reasoning": thought}
    return cast("UsageMetadata", usage)


def _told(body: Mapping[str, Any]) -> Iterator[Any]:
    """Where it may stand in a chunk: of its own, within the choice, or in a field of one provider."""
    yield body.get("usage")
    choices = body.get("choices")
    beside = [*(choices if isinstance(choices, list) else ()), body.get("x_groq")]
    yield from (each.get("usage") for each in beside if isinstance(each, Mapping))


def _rest(known: int | None, total: int | None, other: int | None) -> int | None:
    """One part by the whole, where only the other part is told."""
    if known is not None or total is None or other is None:
        return known
    return max(total - other, 0)


def _first(told: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(told.get(name))) is not None), None)


def _within(told: Mapping[str, Any], places: tuple[tuple[str, str], ...]) -> int | None:
    found = (_count(inner.get(name)) for key, name in places if isinstance(inner := told.get(key), Mapping))
    return next((count for count in found if count), None)


def _count(value: Any) -> int | None:
    """A number of tokens, also where it is sent as a text or with a fraction of nothing."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= _MOST and value == int(value) else None
