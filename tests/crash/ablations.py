"""The product with one of its safeguards taken out, in the harness alone, to see that the checker notices.

Each is applied in a forked run, so nothing outside that run changes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from graph_agent.calls import ToolCallInfo
from graph_agent.graph import observation, tool_routing
from graph_agent.graph.run_context import RunContext, Step
from graph_agent.ports import Answer, Claim, Intent, JournalRow, Question
from graph_agent.ports.background import ShellRecord
from graph_agent.session import graph_runner
from graph_agent.session.thread_graph import ThreadGraph
from graph_agent.storage.sqlite import journal
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.toolbox.background_shells import Shells
from tests.crash.scenes import BACKGROUND, QUESTIONS, SCENES, Scene

__all__ = ["ABLATIONS", "Ablation", "Missing"]

Ablation = Literal[
    "no fence, no look-up",
    "answers are forgotten",
    "approvals outlive their run",
    "started calls count as never started",
    "one result is missing",
    "input is not durable",
    "nothing is asked",
    "words are not stored",
    "shells are nobody's",
    "readings are not distinguished",
]


def _no_fence() -> None:
    """Every run has the same token, and the journal neither remembers nor refuses."""

    async def rows(self: SqliteJournal, thread_id: str, call_id: str) -> list[JournalRow]:
        return []

    async def claim(
        self: SqliteJournal, thread_id: str, call_id: str, attempt: int, owner: str, intent: Intent | None
    ) -> Claim:
        return Claim(won=True)

    async def finish(self: SqliteJournal, *args: Any) -> bool:
        return True

    async def nothing(self: SqliteJournal, *args: Any) -> None:
        return None

    vars(graph_runner)["new_owner_token"] = lambda: "one token for all"
    SqliteJournal.rows = rows  # type: ignore[method-assign]  # the point of an ablation
    SqliteJournal.claim = claim  # type: ignore[method-assign]  # same
    SqliteJournal.finish = finish  # type: ignore[method-assign, assignment]  # same
    SqliteJournal.record_process = nothing  # type: ignore[method-assign, assignment]  # same


def _forget_answers() -> None:
    given: dict[Question, Answer] = {}

    async def insert(self: SqliteDecisions, thread_id: str, question: Question, answer: Answer) -> Answer:
        return given.setdefault(question, answer)

    async def find_answers(
        self: SqliteDecisions, thread_id: str, questions: Sequence[Question]
    ) -> dict[str, Answer]:
        return {question.call_id: given[question] for question in questions if question in given}

    SqliteDecisions.insert = insert  # type: ignore[method-assign]  # the point of an ablation
    SqliteDecisions.find_answers = find_answers  # type: ignore[method-assign]  # same


def _outlive() -> None:
    def was_approved_in_earlier_run(call: ToolCallInfo, run: RunContext) -> bool:
        return False

    tool_routing._was_approved_in_earlier_run = was_approved_in_earlier_run


def _never_started() -> None:
    JournalRow.may_have_started = property(lambda _: False)  # type: ignore[method-assign, assignment]  # the point


def _one_short() -> None:
    observe = observation.Observation.__call__

    async def observed(self: observation.Observation, *args: Any) -> Step:
        step = await observe(self, *args)
        return step._replace(update={**step.update, "messages": step.update["messages"][:-1]})

    observation.Observation.__call__ = observed  # type: ignore[method-assign, assignment]  # the point of an ablation


def _not_durable() -> None:
    begin = ThreadGraph._run

    async def run(self: ThreadGraph, work: Any, context: RunContext) -> Any:
        invoke = self._graph.ainvoke

        async def at_the_end(*args: Any, **options: Any) -> Any:
            return await invoke(*args, **{**options, "durability": "exit"})

        self._graph.ainvoke = at_the_end  # type: ignore[method-assign]  # the point of an ablation
        try:
            return await begin(self, work, context)
        finally:
            self._graph.ainvoke = invoke  # type: ignore[method-assign]  # back as it was

    ThreadGraph._run = run  # type: ignore[method-assign]  # same


def _unasked() -> None:
    record = tool_routing.ToolRouting._record

    def unasked(self: tool_routing.ToolRouting, call_id: str, plan: Any, attempt: int) -> ToolCallInfo:
        verdict = "allow" if plan.verdict == "ask" else plan.verdict
        return record(self, call_id, replace(plan, verdict=verdict), attempt)

    async def unchecked(self: tool_routing.ToolRouting, call: ToolCallInfo, scope: Any, run: Any) -> ToolCallInfo:
        return call

    tool_routing.ToolRouting._record = unasked  # type: ignore[method-assign]  # the point of an ablation
    tool_routing.ToolRouting._evaluate_again = unchecked  # type: ignore[method-assign]  # as above


def _wordless() -> None:
    insert = SqliteDecisions.insert

    async def wordless(self: SqliteDecisions, thread_id: str, question: Question, answer: Answer) -> Answer:
        return await insert(self, thread_id, question, replace(answer, reason=""))

    SqliteDecisions.insert = wordless  # type: ignore[method-assign]  # the point of an ablation


def _nobodys() -> None:
    async def take_up(self: Shells, thread_id: str) -> None:
        return None

    Shells.reattach = take_up  # type: ignore[method-assign]  # the point of an ablation


def _alike() -> None:
    found = journal._shell_record

    def alike(row: Sequence[Any]) -> ShellRecord:
        return replace(found(row), read_by="")

    journal._shell_record = alike


class Missing(NamedTuple):
    """A safeguard taken out."""

    take_out: Callable[[], None]
    die_at: str
    """Label of the crash point at which its absence shows."""
    broken: str
    """Pattern of the violation that the checker must report."""
    lasts: bool = True
    """Whether the runs after the kill go without it too."""
    scene: Scene = SCENES[0]


ABLATIONS: Mapping[Ablation, Missing] = {
    "no fence, no look-up": Missing(_no_fence, "before journal.finish", "I1/I2"),
    "answers are forgotten": Missing(_forget_answers, "before decisions.insert", "I4: .* asked about again"),
    "approvals outlive their run": Missing(_outlive, "after saver.put", "I4: .* approval of another run"),
    "started calls count as never started": Missing(_never_started, "before journal.finish", "I2"),
    "one result is missing": Missing(_one_short, "model asked", "I6|failed: .*InvalidHistory"),
    "input is not durable": Missing(_not_durable, "model asked", "I8", lasts=False),
    "nothing is asked": Missing(_unasked, "model asked", "I3: .* ran without approval"),
    "words are not stored": Missing(_wordless, "model asked", "I3: .* was answered", scene=QUESTIONS),
    "shells are nobody's": Missing(
        _nobodys, "before journal.finish", "I2: process .* nobody has it", scene=BACKGROUND
    ),
    "readings are not distinguished": Missing(_alike, "after shells.read", "I2: of sh1 was told", scene=BACKGROUND),
}
