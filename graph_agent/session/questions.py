"""The desk where questions and answers of one thread meet: what is open, what stands, what needs no person."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Answer, JournalRow, Question
from graph_agent.session.dependencies import SessionDependencies, Thread

__all__ = ["QuestionQueue", "questions_in"]

_UNASKED = 3
"""A low-risk call that was broken off this often while it ran, or that one life let through so often without its
beginning, is not simply run again: a person decides."""


def questions_in(asked: Mapping[str, Any]) -> list[Question]:
    """The questions in the value that human_approval waits with."""
    approvals = [
        Question("approval", q["call_id"], q["attempt"], q["args_digest"], q["reason"]) for q in asked["approve"]
    ]
    recoveries = [
        Question("recovery", q["call_id"], q["attempt"], q["args_digest"], q["reason"]) for q in asked["recover"]
    ]
    return approvals + recoveries


class QuestionQueue:
    """Turns standing answers into the envelope that resumes the graph."""

    def __init__(self, thread: Thread, parts: SessionDependencies) -> None:
        self._thread = thread
        self._parts = parts
        self._let_through: Counter[str] = Counter()

    async def envelope(
        self, questions: Sequence[Question], calls: Mapping[str, ToolCallInfo], life_token: str
    ) -> dict[str, Any] | None:
        """What to resume the graph with; None while a question still waits for its answer.

        Answers that need no person go first and alone: nobody should be asked about a call that has its result.
        """
        standing = await self._parts.decisions.standing(self._thread.thread_id, questions)
        answers = await self._unasked(questions, calls, standing)
        if not answers:
            if len(standing) < len(questions):
                return None
            answers = {q.call_id: _written(q, standing[q.call_id]) for q in questions}
        return {"by": life_token, "at": self._parts.clock.now(), "answers": answers}

    async def settle(self, answered: Sequence[Question], still_open: Iterable[Question]) -> None:
        """After the graph has taken answers in: note it, and free the questions whose answer it did not accept."""
        now, thread_id = self._parts.clock.now(), self._thread.thread_id
        open_again = set(still_open)
        applied = [question for question in answered if question not in open_again]
        refused = [question.call_id for question in answered if question in open_again]
        if refused:
            await self._parts.decisions.supersede(thread_id, refused, now)
        if applied:
            await self._parts.decisions.mark_applied(thread_id, applied, now)

    async def _unasked(
        self,
        questions: Sequence[Question],
        calls: Mapping[str, ToolCallInfo],
        standing: Mapping[str, Answer],
    ) -> dict[str, dict[str, Any]]:
        answers = {}
        for question in questions:
            rows = await self._parts.journal.rows(self._thread.thread_id, question.call_id)
            if answer := await self._as_it_ran(question, calls[question.call_id], rows):
                answers[question.call_id] = _written(question, answer) | {"owner_token": "journal"}
            elif question.kind == "approval" or question.call_id in standing:
                continue
            elif await self._may_run_unasked(calls[question.call_id], rows):
                self._let_through[question.call_id] += 1
                answers[question.call_id] = _written(question, Answer("retry", by="session", at=""))
        return answers

    async def _may_run_unasked(self, call: ToolCallInfo, rows: Sequence[JournalRow]) -> bool:
        if not call.get("resumable"):
            return self._may_simply_run(call, rows)
        begun = bool(call.get("started"))
        return await self._parts.sub_agents.may_go_on(self._thread.thread_id, call["call_id"], begun=begun)

    def _may_simply_run(self, call: ToolCallInfo, rows: Sequence[JournalRow]) -> bool:
        """Whether it only reads, or certainly never began. Attempts that a rewind undid are not in the rows."""
        is_harmless = call.get("kind") == "readonly" or not call.get("started")
        resumable = sum(row.may_have_started for row in rows)
        return (
            call.get("risk") == "low"
            and is_harmless
            and resumable < _UNASKED
            and self._let_through[call["call_id"]] < _UNASKED
        )

    async def _as_it_ran(self, question: Question, call: ToolCallInfo, rows: Sequence[JournalRow]) -> Answer | None:
        """What lets a call that has its result take it, with the arguments it ran with; None for one without."""
        thread_id, call_id = self._thread.thread_id, question.call_id
        finished = [row for row in rows if row.is_finished]
        if not finished:
            return None
        if question.kind == "recovery":
            return Answer("retry", by="journal", at="")
        given = await self._parts.decisions.latest_approval(thread_id, call_id, finished[-1].started_at)
        if given is not None and given.kind == "edit":
            return Answer(
                "edit", by="journal", at="", arguments=given.arguments, outside_sandbox=given.outside_sandbox
            )
        if call.get("requires_input"):
            return Answer("answer", by="journal", at="", reason=given.reason if given else "")
        return Answer("approve", by="journal", at="", outside_sandbox=given is not None and given.outside_sandbox)


def _written(question: Question, answer: Answer) -> dict[str, Any]:
    written: dict[str, Any] = {
        "kind": answer.kind,
        "attempt": question.attempt,
        "args_digest": question.args_digest,
        "decided_by": answer.by,
        "reason": answer.reason,
        **({"outside_sandbox": True} if answer.outside_sandbox else {}),
    }
    return written if answer.arguments is None else {**written, "arguments": dict(answer.arguments)}
