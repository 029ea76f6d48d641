"""What requests used, as a line: tokens, marked where estimated, and what they cost, where that is known."""

from collections.abc import Iterator, Mapping
from typing import Any

from graph_agent.ports.spending import told_usage

__all__ = ["cost_lines", "cost_text", "short_usage", "usage_text"]

_THOUSAND = 1_000
_MILLION = 1_000_000
_CENT = 0.01


def cost_lines(turn: Mapping[str, Any] | None, thread: Mapping[str, Any] | None) -> Iterator[str]:
    """What the last turn and the whole thread used, as stored, and how to let the cost be known."""
    for name, used in (("this turn", turn), ("this thread", thread)):
        told = told_usage(used)
        count = told["requests"]
        yield f"{name}: {count} {'request' if count == 1 else 'requests'}, {usage_text(told)}"
    if told_usage(thread)["cost"] is None:
        yield 'A price is missing: [prices."MODEL"] in config.toml, with input and output per million tokens.'


def usage_text(usage: Mapping[str, Any]) -> str:
    """All that is known; the usage as `told_usage` tells it."""
    mark = "~" if usage["estimated"] else ""
    cached, reasoning = usage["cached_input_tokens"], usage["reasoning_tokens"]
    into = f"{mark}{usage['input_tokens']:,} in{f' ({cached:,} cached)' if cached else ''}"
    out = f"{mark}{usage['output_tokens']:,} out{f' ({reasoning:,} reasoning)' if reasoning else ''}"
    return f"{into}, {out}, cost {cost_text(usage)}"


def short_usage(usage: Mapping[str, Any]) -> str:
    """The total for a line that has little room."""
    mark = "~" if usage["estimated"] else ""
    return f"{mark}{_short(usage['total_tokens'])} tokens · cost {cost_text(usage)}"


def cost_text(usage: Mapping[str, Any]) -> str:
    """The amount with its currency; `unknown` where a price is missing, `~` where the tokens are estimated."""
    cost = usage["cost"]
    if cost is None:
        return "unknown"
    if not cost:
        return "0"
    mark = "~" if usage["estimated"] else ""
    return f"{mark}{cost:.{2 if cost >= 1 else 4 if cost >= _CENT else 6}f} {usage['currency'] or ''}".rstrip()


def _short(count: int) -> str:
    if count < _THOUSAND:
        return str(count)
    return f"{count / _THOUSAND:.1f}k" if count < _MILLION else f"{count / _MILLION:.2f}M"
