"""The questions that the graph waits with, and the envelope of answers that resumes it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graph_agent.calls import MAX_AUTOMATIC_RETRIES, ToolCallInfo
from graph_agent.graph.human_approval import answer_to_json
from graph_agent.ports import Answer, JournalRow, Question
from graph_agent.session.dependencies import SessionDependencies, Thread

__all__ = ["QuestionQueue"]


class QuestionQueue:
    """Turns recorded answers into the envelope that resumes the graph."""

    def __init__(self, thread: Thread, dependencies: SessionDependencies) -> None:
        self._thread_id = thread.thread_id
        self._dependencies = dependencies
        self._retries: Counter[str] = Counter()

    async def envelope(
        self, questions: Sequence[Question], calls: Mapping[str, ToolCallInfo], owner_token: str
    ) -> dict[str, Any] | None:
        """The resume value for the graph; None while a question waits for a person's answer.

        Answers that need no person are applied first and alone: nobody is asked about a call that has its result.
        """
        recorded = await self._dependencies.decisions.find_answers(self._thread_id, questions)
        answers: dict[str, dict[str, Any]] = {}
        for question in questions:
            call = calls[question.call_id]
            rows = await self._dependencies.journal.rows(self._thread_id, question.call_id)
            if answer := await self._answer_from_journal(question, call, rows):
                answers[question.call_id] = answer_to_json(question, answer) | {"owner_token": "journal"}
            elif (
                question.kind == "recovery"
                and question.call_id not in recorded
                and await self._may_retry(call, rows)
            ):
                self._retries[question.call_id] += 1
                answers[question.call_id] = answer_to_json(question, Answer("retry", by="session", at=""))
        if not answers:
            if len(recorded) < len(questions):
                return None
            answers = {q.call_id: answer_to_json(q, recorded[q.call_id]) for q in questions}
        return {"by": owner_token, "at": self._dependencies.clock.now(), "answers": answers}

    async def mark_applied(self, answered: Sequence[Question], still_open: Iterable[Question]) -> None:
        """Note which answers the graph has applied; a question whose answer it rejected can be answered again."""
        now, decisions, open_again = self._dependencies.clock.now(), self._dependencies.decisions, set(still_open)
        applied = [question for question in answered if question not in open_again]
        rejected = [question.call_id for question in answered if question in open_again]
        if rejected:
            await decisions.supersede(self._thread_id, rejected, now)
        if applied:
            await decisions.mark_applied(self._thread_id, applied, now)

    async def _answer_from_journal(
        self, question: Question, call: ToolCallInfo, rows: Sequence[JournalRow]
    ) -> Answer | None:
        """The answer with which a finished call takes its recorded result; None if the call has none."""
        finished = [row for row in rows if row.is_finished]
        if not finished:
            return None
        if question.kind == "recovery":
            return Answer("retry", by="journal", at="")
        decisions, started_at = self._dependencies.decisions, finished[-1].started_at
        given = await decisions.latest_approval(self._thread_id, question.call_id, started_at)
        if given is not None and given.kind == "edit":
            return Answer(
                "edit", by="journal", at="", arguments=given.arguments, outside_sandbox=given.outside_sandbox
            )
        if call.get("requires_input"):
            return Answer("answer", by="journal", at="", reason=given.reason if given else "")
        return Answer("approve", by="journal", at="", outside_sandbox=given is not None and given.outside_sandbox)

    async def _may_retry(self, call: ToolCallInfo, rows: Sequence[JournalRow]) -> bool:
        """Whether a retry needs no person: the call only reads, or certainly never started.

        The journal rows do not contain attempts that a rewind reverted.
        """
        if call.get("resumable"):
            started = bool(call.get("started"))
            return await self._dependencies.sub_agents.may_resume(self._thread_id, call["call_id"], started=started)
        return (
            call.get("risk") == "low"
            and (call.get("kind") == "readonly" or not call.get("started"))
            and sum(row.may_have_started for row in rows) < MAX_AUTOMATIC_RETRIES
            and self._retries[call["call_id"]] < MAX_AUTOMATIC_RETRIES
        )
