"""Answers to the open questions of a session: checked, then recorded. The graph applies them later."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind, ToolCallDecided, WarningIssued
from graph_agent.ports import AlwaysRules, Answer, GrantEffect, Proposal, Question
from graph_agent.session.answer_checks import attach_grant, require_valid_answer, review_edit
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import GraphRunner
from graph_agent.session.recovery import end_running, explain_left_running, explain_refused_retry, running_pids
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["AnswerRecorder"]

_GRANTING: Mapping[GrantEffect, tuple[AnswerKind, ...]] = {"allow": ("approve", "edit"), "deny": ("reject",)}
"""The answers that may store rules of each kind."""


@dataclass(frozen=True, slots=True)
class AnswerRecorder:
    """Records the answers that this process gives; see the methods of `Session` with the same names."""

    thread: Thread
    dependencies: SessionDependencies
    runner: GraphRunner

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        """The question as it would be asked with these arguments."""
        item = self._open_question(question)
        return await review_edit(item, arguments, self.dependencies.toolbox, self.runner.scope)

    async def propose_grant(
        self, question: Question, arguments: Mapping[str, Any] | None, effect: GrantEffect
    ) -> Proposal:
        """The rules that "always", or "always deny", would store."""
        call = self._open_question(question).call
        given = call["arguments"] if arguments is None else arguments
        return await self.dependencies.toolbox.propose(call["tool_name"], given, self.runner.scope, effect)

    async def decide(self, question: Question, answer: Answer, always: AlwaysRules | None) -> Answer:
        """Check and record an answer; returns the one that counts."""
        item = self._open_question(question)
        kind, call_id = answer.kind, question.call_id
        require_valid_answer(item.call, kind)
        if answer.outside_sandbox:
            self._require_sandbox(item, kind)
        if kind == "edit":
            await review_edit(item, answer.arguments or {}, self.dependencies.toolbox, self.runner.scope)
        running = running_pids(await self.runner.processes_of(call_id)) if question.kind == "recovery" else ()
        if kind == "retry" and running:
            raise AnswerRefused(explain_refused_retry(call_id, running))
        if always is not None and not always.rules:
            raise AnswerRefused(f"No rule can be made from call {call_id!r}. Answer it once instead.")
        if always is not None and kind in _GRANTING[always.effect]:
            answer = attach_grant(answer, always, call_id, self.runner.scope, str(self.thread.workspace))
        recorded = await self.dependencies.decisions.insert(self.thread.thread_id, question, answer)
        if recorded.kind != kind:
            raise AnswerRefused(
                f"Call {call_id!r} already has an answer: {recorded.kind} by {recorded.by} at {recorded.at}. "
                "The first answer counts."
            )
        if recorded == answer:
            self.dependencies.bus.publish(ToolCallDecided(call_id, kind, answer.by, answer.reason))
            if running:
                self.dependencies.bus.publish(WarningIssued(explain_left_running(call_id, running)))
        return recorded

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        """End what an interrupted call left running; returns the pids of those that survive."""
        item = self.runner.open_questions.get(question.call_id)
        if item is None or item.question != question or question.kind != "recovery":
            raise AnswerRefused(f"Call {question.call_id} is no longer interrupted. No process was ended.")
        return await end_running(await self.runner.processes_of(question.call_id))

    async def recorded(self) -> dict[str, Answer]:
        """The answers recorded so far to open questions, by call id."""
        questions = [item.question for item in self.runner.open_questions.values()]
        return await self.dependencies.decisions.find_answers(self.thread.thread_id, questions) if questions else {}

    def _require_sandbox(self, item: OpenQuestion, kind: str) -> None:
        sandbox, tool = self.dependencies.sandbox(), item.call["tool_name"]
        if kind not in ("approve", "edit") or not sandbox.is_active or tool not in sandbox.tools:
            raise AnswerRefused(f"{tool} does not run in a sandbox here, so it cannot run outside one.")

    def _open_question(self, question: Question) -> OpenQuestion:
        item = self.runner.open_questions.get(question.call_id)
        if item is None or item.question != question:
            raise AnswerRefused(f"The question about call {question.call_id} is no longer open.")
        return item
