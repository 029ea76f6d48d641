"""Questions about calls in the form of LangChain's review requests, and the decisions that answer them.

Front ends for LangChain's human-in-the-loop middleware show the one and send the other.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Review", "decided_answers", "decisions_example", "decisions_in", "decisions_problem", "review_request"]

_TYPES: Mapping[str, str] = {
    "approve": "approve",
    "retry": "approve",
    "edit": "edit",
    "reject": "reject",
    "cancel": "reject",
    "answer": "respond",
    "done": "respond",
}
"""The type of decision that stands for each kind of answer. No question allows two kinds of one type."""


class Review(NamedTuple):
    """A call that a person is asked about."""

    call_id: str
    tool_name: str
    arguments: Mapping[str, Any]
    description: str
    allowed: Sequence[str]
    """The kinds of answer, one or more."""

    @property
    def types(self) -> list[str]:
        """The types of decision that it allows."""
        return [_TYPES[kind] for kind in self.allowed]


def review_request(reviews: Sequence[Review]) -> dict[str, Any]:
    """The keys that LangChain's front ends read; decisions come in the same order."""
    return {
        "action_requests": [
            {"name": one.tool_name, "args": dict(one.arguments), "description": one.description} for one in reviews
        ],
        "review_configs": [{"action_name": one.tool_name, "allowed_decisions": one.types} for one in reviews],
    }


def decisions_in(reply: Any) -> Sequence[Any] | None:
    """The decisions of a reply; None if it has another form."""
    found = reply.get("decisions") if isinstance(reply, Mapping) else reply
    return found if isinstance(found, list | tuple) else None


def decisions_example(reviews: Sequence[Review]) -> str:
    """One decision for each question, of a type that it allows, as JSON."""
    return json.dumps({"decisions": [{"type": one.types[0]} for one in reviews]})


def decisions_problem(decisions: Sequence[Any], reviews: Sequence[Review]) -> str:
    """Why decisions do not answer the questions, with decisions that would; empty if they do."""
    example = decisions_example(reviews)
    if len(decisions) != len(reviews):
        return (
            f"Questions: {len(reviews)}; decisions: {len(decisions)}. Give one decision for each question, in "
            f"order: {example}."
        )
    for number, (decision, review) in enumerate(zip(decisions, reviews, strict=True), start=1):
        if problem := _problem(decision, review):
            return f"Decision {number}: {problem}. Valid: {example}."
    return ""


def _problem(decision: Any, review: Review) -> str:
    if not isinstance(decision, Mapping) or decision.get("type") not in _TYPES.values():
        return f"{decision!r:.80} has no valid type; valid types: {', '.join(sorted(set(_TYPES.values())))}"
    if decision["type"] not in review.types:
        allowed = ", ".join(review.types)
        return f"type {decision['type']!r} is not allowed for call {review.call_id!r}; allowed: {allowed}"
    edited = decision.get("edited_action")
    if decision["type"] == "edit" and not (isinstance(edited, Mapping) and isinstance(edited.get("args"), Mapping)):
        return 'an edit needs "edited_action": {"name": ..., "args": {...}}'
    return ""


def decided_answers(decisions: Sequence[Mapping[str, Any]], reviews: Sequence[Review]) -> dict[str, dict[str, Any]]:
    """The answers by call id, each with `kind` and `reason`, an edit with `arguments`.

    Requires decisions in which `decisions_problem` found no fault.
    """
    answers = {}
    for decision, review in zip(decisions, reviews, strict=True):
        kind = next(one for one in review.allowed if _TYPES[one] == decision["type"])
        given: dict[str, Any] = {"kind": kind, "reason": str(decision.get("message") or "")}
        if kind == "edit":
            given["arguments"] = decision["edited_action"]["args"]
        answers[review.call_id] = given
    return answers
