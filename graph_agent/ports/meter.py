"""Counts what a request used and what that cost. Pure: the provider's word, else an estimate; prices as told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graph_agent.ports.model import ModelRequest
from graph_agent.ports.spending import TOKENS
from graph_agent.ports.tokens import Known, estimate_message_tokens, estimate_request_tokens

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = ["UNPRICED", "Meter", "Rate"]

_MILLION = 1_000_000
_SURELY = 0.5
"""An estimate is at most about twice the truth: so much of it a request surely takes."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a million tokens of a model cost."""

    input: float
    output: float
    cached_input: float | None = None
    """None: what other input costs."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The prices of this process."""

    prices: Mapping[str, Rate] = field(default_factory=dict)
    """By a model's name, or by name and host as `NAME @ HOST`."""
    currency: str = "USD"

    def usage_of(
        self, request: ModelRequest, reply: "AIMessage", label: str, known: Known | None = None
    ) -> dict[str, Any]:
        """What one request used, to be summed. `label` is that of the model, where the reply does not tell it."""
        told = _told(reply)
        counts = told if told is not None else _estimated(request, reply, known)
        usage = {**{key: count for key, count in counts.items() if count}, "requests": 1}
        if told is None:
            usage["estimated_requests"] = 1
        if not usage.get("total_tokens"):
            return usage
        price = self._price(_names(reply, label))
        if price is None:
            return {**usage, "unpriced_requests": 1}
        return {**usage, "cost": _cost(counts, price), "currency": self.currency}

    def price_of(self, label: str) -> Rate | None:
        """What the model of this label costs; None where no price is configured."""
        return self._price(_parts(label))

    def least(self, request: ModelRequest, label: str, known: Known | None = None) -> tuple[int, float | None]:
        """Tokens and cost that a request will surely take, whatever the answer is; None without a price."""
        tokens = int(estimate_request_tokens(request.messages, request.tools, known) * _SURELY)
        price = self.price_of(label)
        return tokens, _cost({"input_tokens": tokens, "cached_input_tokens": tokens}, price) if price else None

    def _price(self, names: Iterator[str]) -> Rate | None:
        return next((self.prices[name] for name in names if name in self.prices), None)


UNPRICED = Meter()
"""Counts tokens alone."""


def _names(reply: "AIMessage", label: str) -> Iterator[str]:
    """The names a price may stand under: as the model was asked for, then as it calls itself."""
    yield from _parts(str(reply.response_metadata.get("asked") or label))
    yield str(reply.response_metadata.get("model_name") or "")


def _parts(label: str) -> Iterator[str]:
    yield label
    yield label.rpartition(" @ ")[0]


def _told(reply: "AIMessage") -> dict[str, int] | None:
    usage: Mapping[str, Any] | None = reply.usage_metadata
    if not usage:
        return None
    into, out = (usage.get(key) or {} for key in ("input_token_details", "output_token_details"))
    counts = {key: int(usage.get(key) or 0) for key in TOKENS}
    cached, reasoning = int(into.get("cache_read") or 0), int(out.get("reasoning") or 0)
    return {**counts, "cached_input_tokens": cached, "reasoning_tokens": reasoning}


def _estimated(request: ModelRequest, reply: "AIMessage", known: Known | None) -> dict[str, int]:
    into = estimate_request_tokens(request.messages, request.tools, known)
    out = estimate_message_tokens(reply)
    return {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}


def _cost(counts: Mapping[str, int], price: Rate) -> float:
    """The amount for these tokens; without a price of their own cached tokens cost what others do."""
    cached = counts.get("cached_input_tokens", 0)
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = max(counts.get("input_tokens", 0) - cached, 0)
    return (fresh * price.input + cached * cached_price + counts.get("output_tokens", 0) * price.output) / _MILLION
