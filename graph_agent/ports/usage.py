"""Token estimates, usage and cost of model requests, and budgets. JSON values only.

A usage is a plain object: tokens and `requests`; `estimated_requests`, whose tokens the provider did not report;
`cost` with its `currency`, of requests whose price is known, and `unpriced_requests`, of the others;
`unused_requests`, which were sent before their turn and whose answers were not used.

Tokens are estimated by kinds of characters, without a tokenizer. Measured against `cl100k_base` and `o200k_base`
over source code, listings, English, JSON and numbers, an estimate is 0.8 to 1.45 times the count of a file (texts
with long rules of dashes up to 1.9), for encoded bytes 0.8 to 1.25. Chinese, Japanese and Korean come to about one
token a character: the count of the older table, 1.5 times that of the newer. The older needs more than estimated
for Arabic (0.6) and Hindi (0.8); the newer less, down to half for Cyrillic.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

    from graph_agent.ports.model import ModelRequest


__all__ = [
    "TOKENS",
    "UNLIMITED",
    "UNPRICED",
    "Budget",
    "EstimateCache",
    "Meter",
    "Rate",
    "SharedBudget",
    "UsageTotals",
    "add_usage",
    "estimate_message_tokens",
    "estimate_request_tokens",
    "estimate_tokens",
    "format_cost",
    "format_short_cost",
    "format_usage",
    "usage_report",
]

TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens")
"""Cached tokens are part of the input, reasoning tokens part of the output."""

_ADDED = (*TOKENS, "requests", "estimated_requests", "unpriced_requests", "unused_requests")
_CENTS_OF_CENTS = 10
"""Decimal places of an amount: what floating point adds beyond them was never spent."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used before a person is asked; None is without limit. Steps are limited apart from it."""

    max_tokens: int | None = None
    """Of one turn."""
    max_cost: float | None = None
    """Of one turn."""
    max_thread_tokens: int | None = None
    max_thread_cost: float | None = None

    @property
    def limits_cost(self) -> bool:
        """Whether prices have to be known to keep it."""
        return self.max_cost is not None or self.max_thread_cost is not None


UNLIMITED = Budget()


def add_usage(total: Mapping[str, Any] | None, usage: Mapping[str, Any]) -> dict[str, Any]:
    """Both together. Amounts in two currencies are no amount: the later requests count as unpriced."""
    before = dict(total or {})
    added = before | {key: _count(before, key) + _count(usage, key) for key in _ADDED if _count(usage, key)}
    cost, currency = usage.get("cost"), usage.get("currency")
    if not isinstance(cost, int | float):
        return added
    if before.get("cost") and before.get("currency") != currency:
        added["unpriced_requests"] = _count(added, "unpriced_requests") + _count(usage, "requests")
        return added
    return {**added, "cost": round(before.get("cost", 0.0) + cost, _CENTS_OF_CENTS), "currency": currency}


def usage_report(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """A usage as it is shown: every count, whether any of it is estimated, and the cost, None where unknown."""
    known = usage or {}
    counts = {key: _count(known, key) for key in (*TOKENS, "requests")}
    is_priced = not _count(known, "unpriced_requests") and (not counts["total_tokens"] or "cost" in known)
    return {
        **counts,
        "estimated": bool(_count(known, "estimated_requests")),
        "cost": known.get("cost", 0.0) if is_priced else None,
        "currency": known.get("currency") if is_priced else None,
    }


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_WEIGHTS: Final = (
    (bytes(range(0x61, 0x7B)), 0.21),  # small letters
    (bytes(range(0x41, 0x5B)), 0.5),  # capitals stand in names and in encoded bytes
    (b"0123456789", 0.7),
    (b" ", 0.1),
    (b"\t\n\r", 0.4),
    (bytes(range(0xC2, 0xE0)), 0.5),  # begins two bytes of UTF-8: accents, Cyrillic, Greek, Arabic
    (bytes(range(0xE0, 0xF0)), 1.0),  # three: Chinese, Japanese, Korean, Indian scripts
    (bytes(range(0xF0, 0xF5)), 2.5),  # four: emoji
)
_CONTINUATION: Final = bytes(range(0x80, 0xC2))
_PUNCTUATION: Final = 0.58
"""Of every other character."""
_LONG_RUN: Final = 0.5
"""More of each letter beyond twelve for each blank, line end or mark: bytes in base64 hold no words."""
_PER_MESSAGE: Final = 4
_PER_IMAGE: Final = 1_600
"""What providers count at most for an image of the size to which they reduce it; some models count more."""


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is; at least 1 unless it is empty. Takes about a millisecond a megabyte."""
    other = text.encode("utf-8", "replace").translate(None, _CONTINUATION)
    total = 0.0
    counts = []
    for kind, weight in _WEIGHTS:
        fewer = other.translate(None, kind)
        counts.append(len(other) - len(fewer))
        total += weight * counts[-1]
        other = fewer
    small, capital, _, blank, line_end, *_ = counts
    breaks = blank + line_end + len(other)
    total += _PUNCTUATION * len(other) + _LONG_RUN * max(0, small + capital - 12 * (breaks + 1))
    return max(round(total), 1) if text else 0


def estimate_message_tokens(message: "BaseMessage") -> int:
    """About how many tokens one message is in a request, its calls and its frame included."""
    total = _PER_MESSAGE
    for block in [message.content] if isinstance(message.content, str) else message.content:
        text = block if isinstance(block, str) else block.get("text")
        total += estimate_tokens(text) if isinstance(text, str) else _PER_IMAGE
    total += _PER_IMAGE * len(message.additional_kwargs.get("images") or ())
    for call in getattr(message, "tool_calls", ()):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        total += _PER_MESSAGE + estimate_tokens(call["name"]) + estimate_tokens(arguments)
    return total


_LARGEST_CACHE: Final = 4_000


class EstimateCache:
    """Estimates from earlier requests: what is part of many requests is estimated once."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int], int] = {}
        """By id and length: a message may be shortened under its id."""
        self._declarations: dict[int, tuple[Mapping[str, Any], int]] = {}
        """By identity of the declaration, which is held so that no other one can get it."""

    def message_tokens(self, message: "BaseMessage") -> int:
        """What `estimate_message_tokens` says of it."""
        if message.id is None or not isinstance(message.content, str):
            return estimate_message_tokens(message)
        key = (message.id, len(message.content))
        if key not in self._messages:
            if len(self._messages) >= _LARGEST_CACHE:
                self._messages.clear()
            self._messages[key] = estimate_message_tokens(message)
        return self._messages[key]

    def declarations_tokens(self, declarations: Iterable[Mapping[str, Any]]) -> int:
        """About how many tokens these function declarations are."""
        total = 0
        for declaration in declarations:
            if id(declaration) not in self._declarations:
                if len(self._declarations) >= _LARGEST_CACHE:
                    self._declarations.clear()
                text = json.dumps(declaration, ensure_ascii=False, default=str)
                self._declarations[id(declaration)] = (declaration, estimate_tokens(text))
            total += self._declarations[id(declaration)][1]
        return total


def estimate_request_tokens(
    messages: "Iterable[BaseMessage]", tools: Iterable[Mapping[str, Any]] = (), known: EstimateCache | None = None
) -> int:
    """About how many tokens a whole request is; what is `known` is not estimated again."""
    cache = known or EstimateCache()
    return sum(map(cache.message_tokens, messages)) + cache.declarations_tokens(tools)


_MILLION = 1_000_000
_MINIMUM_SHARE = 0.5
"""An estimate is at most about twice the truth: a request certainly takes this share of it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a million tokens of a model cost."""

    input: float
    output: float
    cached_input: float | None = None
    """None: what other input costs."""

    def cost(self, counts: Mapping[str, int]) -> float:
        """The amount for the token counts of a usage."""
        cached = counts.get("cached_input_tokens", 0)
        uncached = max(counts.get("input_tokens", 0) - cached, 0)
        cached_price = self.input if self.cached_input is None else self.cached_input
        amount = uncached * self.input + cached * cached_price + counts.get("output_tokens", 0) * self.output
        return amount / _MILLION


@dataclass(frozen=True, slots=True)
class Meter:
    """Counts what requests use, with the prices of this process."""

    prices: Mapping[str, Rate] = field(default_factory=dict)
    """By a model's name, or by name and host as `NAME @ HOST`."""
    currency: str = "USD"

    def usage_of(
        self, request: "ModelRequest", reply: "AIMessage", label: str, known: EstimateCache | None = None
    ) -> dict[str, Any]:
        """The usage of one request. `label` is that of the model, where the reply does not name it."""
        reported: Mapping[str, Any] = reply.usage_metadata or {}
        if reported:
            sent, received = (reported.get(f"{way}_token_details") or {} for way in ("input", "output"))
            counts = {key: int(reported.get(key) or 0) for key in TOKENS}
            counts["cached_input_tokens"] = int(sent.get("cache_read") or 0)
            counts["reasoning_tokens"] = int(received.get("reasoning") or 0)
        else:
            into = estimate_request_tokens(request.messages, request.tools, known)
            out = estimate_message_tokens(reply)
            counts = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
        usage: dict[str, Any] = {key: count for key, count in counts.items() if count} | {"requests": 1}
        if not reported:
            usage["estimated_requests"] = 1
        if not usage.get("total_tokens"):
            return usage
        # A price may stand under the name the model was asked for, or under the one it calls itself.
        metadata = reply.response_metadata
        price = self.price_of(str(metadata.get("asked") or label)) or self.prices.get(
            str(metadata.get("model_name") or "")
        )
        if price is None:
            return {**usage, "unpriced_requests": 1}
        return {**usage, "cost": price.cost(counts), "currency": self.currency}

    def unused_usage(self, tokens: Sequence[int], counted: Mapping[str, Any] | None, label: str) -> dict[str, Any]:
        """The usage of requests that were sent and not used, of these tokens, without those that are counted."""
        new = tokens[_count(counted or {}, "unused_requests") :]
        if not new:
            return {}
        counts = {"input_tokens": sum(new), "total_tokens": sum(new)}
        number = dict.fromkeys(("requests", "estimated_requests", "unused_requests"), len(new))
        price = self.price_of(label)
        if price is None:
            return {**counts, **number, "unpriced_requests": len(new)}
        return {**counts, **number, "cost": price.cost(counts), "currency": self.currency}

    def price_of(self, label: str) -> Rate | None:
        """What the model of this label costs; None where no price is configured."""
        return self.prices.get(label) or self.prices.get(label.rpartition(" @ ")[0])

    def minimum_usage(
        self, request: "ModelRequest", label: str, known: EstimateCache | None = None
    ) -> tuple[int, float | None]:
        """Tokens and cost that a request certainly takes, whatever the answer is; None without a price."""
        tokens = int(estimate_request_tokens(request.messages, request.tools, known) * _MINIMUM_SHARE)
        price = self.price_of(label)
        return tokens, price.cost({"input_tokens": tokens, "cached_input_tokens": tokens}) if price else None


UNPRICED = Meter()
"""Counts tokens alone."""


class UsageTotals(NamedTuple):
    """What requests used, as far as a state says."""

    turn: Mapping[str, Any] = {}
    thread: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Share:
    parent: str
    call_id: str
    used: UsageTotals
    has_ended: bool = False


@dataclass(slots=True)
class SharedBudget:
    """What one turn and its thread may use, with what its sub-agents have used of it so far."""

    budget: Budget
    max_steps: int
    _own: UsageTotals = field(default_factory=UsageTotals)
    _own_steps: int = 0
    _shares: dict[str, _Share] = field(default_factory=dict)
    """Sub-agents by their thread."""
    _requests: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Tokens and cost that the requests under way take at least, by thread."""

    @property
    def steps(self) -> int:
        """Model requests of the turn, those under way among them."""
        of_sub_agents = sum(int(share.used.turn.get("requests", 0)) for share in self._shares.values())
        return self._own_steps + of_sub_agents + len(self._requests)

    def set_own_usage(self, thread_id: str, used: UsageTotals, steps: int, open_calls: Collection[str]) -> None:
        """Take over what the owner's own state says; that of sub-agents whose calls have ended is part of it."""
        self._own, self._own_steps = used, steps
        self.forget_ended(thread_id, open_calls)

    def forget_ended(self, thread_id: str, open_calls: Collection[str]) -> None:
        """Leave out sub-agents whose calls have ended, and those below them: the owner's state has their usage."""
        ended = [
            child
            for child, share in self._shares.items()
            if share.has_ended and share.parent == thread_id and share.call_id not in open_calls
        ]
        while ended:
            for child in ended:
                del self._shares[child]
            above = {thread_id, *self._shares}
            ended = [child for child, share in self._shares.items() if share.parent not in above]

    def add_sub_agent(self, thread_id: str, parent: str, call_id: str, used: UsageTotals) -> None:
        """Let a sub-agent draw on the budget, which has used so much already."""
        self._shares[thread_id] = _Share(parent, call_id, used)

    def set_sub_agent_usage(self, thread_id: str, used: UsageTotals) -> None:
        """Take over what the state of a sub-agent says; those below it that have ended are part of it."""
        if thread_id in self._shares:
            self._shares[thread_id].used = used
        for child in [c for c, share in self._shares.items() if share.has_ended and share.parent == thread_id]:
            del self._shares[child]

    def end_sub_agent(self, thread_id: str) -> None:
        """Note that a sub-agent has ended; what it used counts here until a state has it."""
        if thread_id in self._shares:
            self._shares[thread_id].has_ended = True

    def begin_request(self, thread_id: str, minimum: tuple[int, float | None]) -> None:
        """Reserve the tokens, and the cost, that a request takes at least."""
        self._requests[thread_id] = (minimum[0], minimum[1] or 0.0)

    def end_request(self, thread_id: str) -> None:
        """Release what was reserved: the request has ended, or failed."""
        self._requests.pop(thread_id, None)

    def sub_agent_usage(self) -> UsageTotals:
        """By the sub-agents alone, as far as the owner's state does not say it."""
        turn: Mapping[str, Any] = {}
        thread: Mapping[str, Any] = {}
        for share in self._shares.values():
            turn, thread = add_usage(turn, share.used.turn), add_usage(thread, share.used.thread)
        return UsageTotals(turn, thread)

    def total_usage(self) -> UsageTotals:
        """By all of them, with what the requests under way take at least."""
        below = self.sub_agent_usage()
        turn, thread = add_usage(self._own.turn, below.turn), add_usage(self._own.thread, below.thread)
        tokens = sum(tokens for tokens, _ in self._requests.values())
        cost = sum(cost for _, cost in self._requests.values())
        if tokens:
            for usage in (turn, thread):
                usage["total_tokens"] = usage.get("total_tokens", 0) + tokens
                usage["cost"] = usage.get("cost", 0.0) + cost
        return UsageTotals(turn, thread)


def format_usage(usage: Mapping[str, Any]) -> str:
    """Tokens in and out and the cost, of a usage as `usage_report` returns it."""
    mark = "~" if usage["estimated"] else ""
    cached, reasoning = usage["cached_input_tokens"], usage["reasoning_tokens"]
    into = f"{mark}{usage['input_tokens']:,} in{f' ({cached:,} cached)' if cached else ''}"
    out = f"{mark}{usage['output_tokens']:,} out{f' ({reasoning:,} reasoning)' if reasoning else ''}"
    return f"{into}, {out}, cost {format_cost(usage)}"


def format_short_cost(usage: Mapping[str, Any]) -> str:
    """The cost in cents, for a line with little room; empty where it is not known, or nothing."""
    if not usage["cost"]:
        return ""
    amount = f"{usage['cost']:.2f}"
    return f"${amount}" if usage["currency"] == "USD" else f"{amount} {usage['currency'] or ''}".rstrip()


def format_cost(usage: Mapping[str, Any]) -> str:
    """The cost with its currency; `unknown` without a price, with `~` if tokens are estimated."""
    cost = usage["cost"]
    if cost is None:
        return "unknown"
    if not cost:
        return "0"
    digits = 2 if cost >= 1 else 4 if cost >= 0.01 else 6
    return f"{'~' if usage['estimated'] else ''}{cost:.{digits}f} {usage['currency'] or ''}".rstrip()
