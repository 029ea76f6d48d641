"""The open questions of a held thread and the answers they may get: judged, recorded, told. Runs no graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph_agent.errors import AnswerRefused
from graph_agent.events import ToolCallDecided, WarningIssued
from graph_agent.ports import AlwaysAllow, Answer, Proposal, Question
from graph_agent.session.answer_checks import attach_grant, require_valid_answer, reviewed
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import GraphRunner
from graph_agent.session.recovery import end, goes_on, living, still_running
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["Answering"]


@dataclass(frozen=True, slots=True)
class Answering:
    """Answers given by this process."""

    thread: Thread
    parts: SessionDependencies
    drive: GraphRunner

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        """See `Session.reconsider`."""
        return await reviewed(self._open(question), arguments, self.parts.toolbox, self.drive.scope)

    async def propose_grant(self, question: Question, arguments: Mapping[str, Any] | None) -> Proposal:
        """See `Session.propose`."""
        call = self._open(question).call
        given = call["arguments"] if arguments is None else arguments
        return await self.parts.toolbox.propose(call["tool_name"], given, self.drive.scope)

    async def decide(self, question: Question, answer: Answer, always: AlwaysAllow | None) -> Answer:
        """See `Session.decide`."""
        item = self._open(question)
        kind, call_id = answer.kind, question.call_id
        require_valid_answer(item.call, kind)
        if answer.outside_sandbox:
            self._require_outside(item, kind)
        if kind == "edit":
            await reviewed(item, answer.arguments or {}, self.parts.toolbox, self.drive.scope)
        left = living(await self.drive.left_running(call_id)) if question.kind == "recovery" else ()
        if kind == "retry" and left:
            raise AnswerRefused(still_running(call_id, left))
        if always is not None and not always.rules:
            raise AnswerRefused(f"no rule can be made of call {call_id!r}: approve it once instead")
        if always is not None and kind in ("approve", "edit"):
            answer = attach_grant(answer, always, call_id, self.drive.scope, str(self.thread.workspace))
        standing = await self.parts.decisions.insert(self.thread.thread_id, question, answer)
        if standing == answer:
            self.parts.bus.publish(ToolCallDecided(call_id, kind, answer.by, answer.reason))
            if left:
                self.parts.bus.publish(WarningIssued(goes_on(call_id, left)))
        return standing

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        """See `Session.end_processes`."""
        item = self.drive.open.get(question.call_id)
        if item is None or item.question != question or question.kind != "recovery":
            raise AnswerRefused(f"call {question.call_id} is not interrupted (any more); nothing was ended")
        return await end(await self.drive.left_running(question.call_id))

    async def standing(self) -> dict[str, Answer]:
        """The answers recorded so far to what is open, by call id."""
        questions = [item.question for item in self.drive.open.values()]
        return await self.parts.decisions.standing(self.thread.thread_id, questions) if questions else {}

    def _require_outside(self, item: OpenQuestion, kind: str) -> None:
        sandbox, tool = self.parts.sandbox(), item.call["tool_name"]
        if kind not in ("approve", "edit") or not sandbox.is_active or tool not in sandbox.tools:
            raise AnswerRefused(f"{tool} does not run in a sandbox here; there is nothing to let it out of")

    def _open(self, question: Question) -> OpenQuestion:
        item = self.drive.open.get(question.call_id)
        if item is None or item.question != question:
            raise AnswerRefused(f"the question about call {question.call_id} is not open (any more)")
        return item
