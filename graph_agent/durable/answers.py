"""Questions about calls as a graph asks them with `interrupt()`, and the answers that it accepts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graph_agent.errors import AnswerRefused
from graph_agent.ports import Answer, Question
from graph_agent.ports.reviews import Review, decided_answers, decisions_in, decisions_problem, review_request

if TYPE_CHECKING:
    from langgraph.types import Command

    from graph_agent.durable.journal import JournalCall

__all__ = ["ALLOWED", "OpenQuestion", "answer", "interrupt_value", "read_answers"]

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "edit", "reject"),
    "recovery": ("retry", "done", "cancel"),
}
_KIND = "durable_calls"


class OpenQuestion(NamedTuple):
    """A question, and the call it is about."""

    call: "JournalCall"
    question: Question
    started_at: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        """The question in words."""
        if self.question.kind == "approval":
            return f"Run {self.call.tool_name}? ({self.question.reason})"
        error = f" It raised: {self.error}." if self.error else ""
        return (
            f"{self.call.tool_name} started at {self.started_at} and has no recorded outcome.{error} Run it again "
            "(retry), record what it did (done, with a result), or cancel it?"
        )

    @property
    def review(self) -> Review:
        """The question in LangChain's terms."""
        call = self.call
        return Review(call.call_id, call.tool_name, call.arguments, self.text, ALLOWED[self.question.kind])


def interrupt_value(questions: Sequence[OpenQuestion], error: str) -> dict[str, Any]:
    """The value of the interrupt: all open questions; also in the form of LangChain's review requests."""
    shown = [
        {
            "kind": one.question.kind,
            "call_id": one.call.call_id,
            "attempt": one.question.attempt,
            "tool_name": one.call.tool_name,
            "arguments": dict(one.call.arguments),
            "args_digest": one.question.args_digest,
            "reason": one.question.reason,
            "text": one.text,
            "allowed_answers": list(ALLOWED[one.question.kind]),
        }
        for one in questions
    ]
    value = {"type": _KIND, "questions": shown, **review_request([one.review for one in questions])}
    return {**value, "error": error} if error else value


def answer(asked: Any, answers: Mapping[str, Any], *, by: str = "") -> "Command[Any]":
    """The command that answers questions by call id, however many interrupts asked them.

    Args:
        asked: what `invoke` returned, a state snapshot, or interrupts.
        answers: by call id, `"approve"` or a mapping such as `{"kind": "done", "result": "charged"}`.
        by: who answers, for the journal.

    Raises:
        AnswerRefused: a call id is not among the questions; the message lists those that are.
    """
    from langgraph.types import Command  # noqa: PLC0415 - loaded when it is used

    resume: dict[str, Any] = {}
    open_ids: list[str] = []
    for one in _interrupts(asked):
        value = one.value if isinstance(one.value, Mapping) and one.value.get("type") == _KIND else {}
        questions = {str(question["call_id"]): question for question in value.get("questions", ())}
        open_ids += questions
        given = {
            call_id: {**_as_mapping(answers[call_id]), "attempt": question["attempt"]}
            for call_id, question in questions.items()
            if call_id in answers
        }
        if given:
            resume[one.id] = {"answers": given, "by": by}
    if unknown := sorted(answers.keys() - set(open_ids)):
        known = ", ".join(open_ids) or "none"
        raise AnswerRefused(f"Call {unknown[0]!r} has no open question. Calls with an open question: {known}.")
    return Command(resume=resume)


def _interrupts(asked: Any) -> Sequence[Any]:
    if isinstance(asked, Mapping):
        asked = asked.get("__interrupt__", ())
    found = getattr(asked, "interrupts", asked)
    return found if isinstance(found, list | tuple) else (found,)


def read_answers(
    reply: Any, questions: Sequence[OpenQuestion], now: str
) -> tuple[list[tuple["JournalCall", Question, Answer]], str]:
    """The answers in a reply, and what is wrong with the rest of it; empty if nothing is."""
    by = str(reply.get("by") or "langgraph") if isinstance(reply, Mapping) else "langgraph"
    given = reply.get("answers", reply) if isinstance(reply, Mapping) else reply
    if len(questions) == 1 and isinstance(given, Mapping) and isinstance(given.get("type"), str):
        given = [given]
    if (decisions := decisions_in(given)) is not None:
        reviews = [one.review for one in questions]
        if problem := decisions_problem(decisions, reviews):
            return [], problem
        given = decided_answers(decisions, reviews)
    elif len(questions) == 1 and (isinstance(given, str) or "kind" in _as_mapping(given)):
        given = {questions[0].call.call_id: given}
    if not isinstance(given, Mapping):
        given = {}
    found, problems = [], []
    for one in questions:
        if one.call.call_id not in given:
            problems.append(f"no answer for call {one.call.call_id!r}")
            continue
        read = _read_answer(_as_mapping(given[one.call.call_id]), one.question, by, now)
        if isinstance(read, str):
            problems.append(f"the answer for call {one.call.call_id!r} {read}")
        else:
            found.append((one.call, one.question, read))
    return found, _advice(problems, questions) if problems else ""


def _read_answer(item: Mapping[str, Any], question: Question, by: str, now: str) -> Answer | str:
    """An answer, or what is wrong with it."""
    kind = str(item.get("kind", ""))
    if kind not in ALLOWED[question.kind]:
        return f"is {kind!r}, which is none of {', '.join(ALLOWED[question.kind])}"
    if item.get("attempt", question.attempt) != question.attempt:
        return f"is about attempt {item['attempt']}, the question is about attempt {question.attempt}"
    text = next((item[name] for name in ("result", "reason") if item.get(name) is not None), "")
    arguments = item.get("arguments")
    if kind == "edit" and not isinstance(arguments, Mapping):
        return "is an edit without arguments"
    edited = {str(name): value for name, value in arguments.items()} if kind == "edit" and arguments else None
    return Answer(kind, by, now, arguments=edited, reason=str(text))  # type: ignore[arg-type]  # one of ALLOWED


def _as_mapping(item: Any) -> Mapping[str, Any]:
    return item if isinstance(item, Mapping) else {"kind": str(item)}


def _advice(problems: Sequence[str], questions: Sequence[OpenQuestion]) -> str:
    examples = {one.call.call_id: {"kind": ALLOWED[one.question.kind][0]} for one in questions}
    said = "; ".join(problems)
    return f"{said[:1].upper()}{said[1:]}. A valid answer: Command(resume={{'answers': {examples}}})"
