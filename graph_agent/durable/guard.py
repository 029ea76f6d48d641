"""A call with a recorded result is replayed, one that may have run is asked about, any other is claimed and run.

`DurableTools`, the middleware and `durable` differ only in how they run the tool; what happens around it is here.
"""

import asyncio
import base64
import hashlib
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphInterrupt
from langgraph.runtime import ExecutionInfo, get_runtime
from langgraph.types import Command, interrupt

from graph_agent.durable.answers import OpenQuestion, interrupt_value, read_answers
from graph_agent.durable.journal import CallEntry, Claim, Journal, JournalCall
from graph_agent.durable.tool_policy import CallTakenOver, RunningCall, ToolPolicy, UnknownCall, UnknownOutcome
from graph_agent.errors import ConfigError
from graph_agent.ports import Answer
from graph_agent.ports.stored_text import json_text, plain_text

__all__ = ["CallGuard", "GuardedCall", "Result", "current_call", "idempotency_key", "journal_call", "run_in_thread"]

T = TypeVar("T")
Result = ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]
"""What a tool node gets from a call."""

_LOG = logging.getLogger(__name__)
_PAUSED = "paused"
"""Why an attempt ended in which the tool itself asked something: it runs again with the answer, as in LangGraph."""
_running: ContextVar[RunningCall] = ContextVar("running_call")
_asking = threading.Lock()
_executions: dict[str, ExecutionInfo] = {}
"""The newest run of each task that has passed over the replies of earlier runs."""
_MOST_EXECUTIONS = 1000


def current_call() -> RunningCall:
    """The call that the code around runs for.

    Raises:
        LookupError: it runs for no durable call.
    """
    return _running.get()


def idempotency_key(call: JournalCall) -> str:
    """The key of a call: the same in every attempt, different for every call."""
    return hashlib.sha256(f"{call.thread_id}\0{call.call_id}".encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """A call, and what is declared about its tool."""

    call: JournalCall
    tool_call_id: str
    """The id that the model gave the call; the result carries it."""
    policy: ToolPolicy
    takes_key: bool
    task: str
    """The task of the graph that runs the call: its replies are counted."""
    is_asked_about: bool = False
    """Whether all questions of its message have been asked before it runs."""


@dataclass(frozen=True, slots=True)
class _Run:
    attempt: int
    arguments: Mapping[str, Any]


_Next = Result | _Run | OpenQuestion
"""What comes next for a call: its result, a run, or a question."""


class CallGuard:
    """What stands between a graph and its tools."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._serializer = JsonPlusSerializer(allowed_msgpack_modules=None)

    def ask(self, calls: Sequence[GuardedCall]) -> None:
        """Ask everything that is open about these calls, in one interrupt, until all of it is answered.

        Raises:
            GraphInterrupt: nobody has answered yet.
            CallHeld, UnknownOutcome, ConfigError: see `ToolPolicy`.
        """
        task, problem = calls[0].task, ""
        while True:
            questions = [step for step in map(self._step, calls) if isinstance(step, OpenQuestion)]
            # One after the other: the replies to a task come in the order in which it asks for them.
            with _asking:
                self._skip_answered(task)
                asked = [one for one in questions if self._journal.find_answer(one.call, one.question) is None]
                if asked:
                    problem = self._ask_once(task, asked, problem)
            if not questions:
                return

    def run(self, guarded: GuardedCall, execute: Callable[[Claim], T]) -> T | Result:
        """The recorded result of a call, or that of running it now."""
        begun = self._begin(guarded)
        if not isinstance(begun, Claim):
            return begun
        result: T
        with _recorded_failure(self._journal, begun), _as_running(begun):
            result = execute(begun)
        self._finish(begun, result)
        return result

    async def arun(self, guarded: GuardedCall, execute: Callable[[Claim], Awaitable[T]]) -> T | Result:
        """As `run`; the journal is used in worker threads."""
        begun: Claim | Result = await run_in_thread(lambda: self._begin(guarded), self._abandon)
        if not isinstance(begun, Claim):
            return begun
        with _as_running(begun):
            try:
                result = await execute(begun)
            except BaseException as error:
                reason, text = _failure(error)
                await run_in_thread(lambda: self._journal.stop(begun, reason, text))
                raise
        await run_in_thread(lambda: self._finish(begun, result))
        return result

    def _abandon(self, begun: Any) -> None:
        if isinstance(begun, Claim):
            self._journal.stop(begun, "never_started", "", started=False)

    def _begin(self, guarded: GuardedCall) -> Claim | Result:
        if not guarded.is_asked_about:
            self.ask([guarded])
        while True:
            step = self._step(guarded)
            if isinstance(step, OpenQuestion):
                self.ask([guarded])
            elif not isinstance(step, _Run):
                return step
            elif claim := self._journal.claim(guarded.call, step.attempt, step.arguments):
                return claim

    def _skip_answered(self, task: str) -> None:
        """Once in each run of a task, pass over the replies that its questions here have had.

        A replay brings them again, in order, and what the tools ask comes after them.
        """
        try:
            execution = get_runtime().execution_info
        except RuntimeError:
            return
        if execution is None or _executions.get(task) is execution:
            return
        _executions.pop(task, None)
        _executions[task] = execution
        if len(_executions) > _MOST_EXECUTIONS:
            _executions.pop(next(iter(_executions)))
        for number in range(self._journal.rounds(task)):
            try:
                interrupt(None)
            except GraphInterrupt:
                # The process died before LangGraph had saved the reply; the answers in it are in the journal.
                self._journal.forget_rounds(task, number)
                return

    def _ask_once(self, task: str, questions: Sequence[OpenQuestion], problem: str) -> str:
        """Ask, or take the answers that came; returns what was wrong with them."""
        number = self._journal.rounds(task)
        try:
            reply = interrupt(interrupt_value(questions, problem))
        except GraphInterrupt:
            self._journal.ask(task, number, [(one.call, one.question) for one in questions])
            raise
        except RuntimeError as error:
            one = questions[0]
            raise ConfigError(
                f"Call {one.call.call_id!r} needs an answer ({one.text}), and no graph runs that could ask. "
                "Run the tool in a graph with a checkpointer, or choose another policy."
            ) from error
        found, problem = read_answers(reply, questions, self._journal.now())
        refused = self._journal.take_answers(task, number, found)
        return problem or " ".join(
            f"The question about call {one.call_id!r} has changed. Answer it again." for one in refused
        )

    def _step(self, guarded: GuardedCall) -> _Next:
        entry = self._journal.entry(guarded.call)
        if entry.record and not _is_same(entry.record, guarded.call):
            _LOG.warning(
                "call %s of thread %s came back changed and was not run",
                guarded.call.call_id,
                guarded.call.thread_id,
            )
            return _message(guarded, "error", _CHANGED.format(guarded.tool_call_id, entry.record.get("tool_name")))
        if entry.outcome is not None:
            return self._load(entry.outcome, guarded)
        if entry.attempt == 0:
            return self._before_first_attempt(guarded, entry)
        arguments = entry.record.get("arguments", guarded.call.arguments)
        if entry.status == "not_started" or entry.record.get("reason") == _PAUSED:
            return _Run(entry.attempt + 1, arguments)
        return self._after_unknown_outcome(guarded, entry, arguments)

    def _before_first_attempt(self, guarded: GuardedCall, entry: CallEntry) -> _Next:
        reason = guarded.policy.approval_reason(
            {"name": guarded.call.tool_name, "args": dict(guarded.call.arguments), "id": guarded.tool_call_id}
        )
        if entry.record:
            # Asked once, it waits for its answer and keeps to it, whatever the policy says now.
            reason = reason or str(entry.record.get("reason") or "approval required")
        if not reason:
            return _Run(1, guarded.call.arguments)
        question = guarded.call.question("approval", 1, reason)
        answer = self._journal.find_answer(guarded.call, question)
        if answer is None:
            return OpenQuestion(guarded.call, question)
        if answer.kind in ("approve", "edit"):
            return _Run(1, answer.arguments if answer.arguments is not None else guarded.call.arguments)
        return self._decide(guarded, 0, "error", _REJECTED.format(_because(answer)), answer)

    def _after_unknown_outcome(self, guarded: GuardedCall, entry: CallEntry, arguments: Mapping[str, Any]) -> _Next:
        question = guarded.call.question("recovery", entry.attempt, "outcome_unknown")
        answer = self._journal.find_answer(guarded.call, question) or self._reconciled(guarded, entry, arguments)
        if answer is None:
            error = str(entry.record.get("last_error", ""))
            asked = OpenQuestion(guarded.call, question, entry.started_at, error)
            return self._apply_policy(guarded, asked, _Run(entry.attempt + 1, arguments))
        if answer.kind == "retry":
            return _Run(entry.attempt + 1, arguments)
        if answer.kind == "done":
            return self._decide(guarded, entry.attempt, "success", answer.reason or _DONE, answer)
        return self._decide(guarded, entry.attempt, "error", _CANCELLED.format(_because(answer)), answer)

    def _reconciled(self, guarded: GuardedCall, entry: CallEntry, arguments: Mapping[str, Any]) -> Answer | None:
        if guarded.policy.reconcile is None:
            return None
        unknown = UnknownCall(
            guarded.call.thread_id,
            guarded.call.call_id,
            guarded.call.tool_name,
            arguments,
            entry.attempt,
            idempotency_key(guarded.call),
            entry.started_at,
            str(entry.record.get("last_error", "")),
        )
        found = guarded.policy.reconcile(unknown)
        verdict, result = (found, "") if isinstance(found, str) else found
        match verdict:
            case "applied":
                return Answer("done", "reconciler", self._journal.now(), reason=str(result))
            case "not_applied":
                return Answer("retry", "reconciler", self._journal.now())
            case "unknown":
                return None
        raise ConfigError(
            f"The reconcile function of {unknown.tool_name!r} returned {verdict!r}. It returns 'applied', "
            "'not_applied', 'unknown', or ('applied', RESULT)."
        )

    def _apply_policy(self, guarded: GuardedCall, asked: OpenQuestion, retry: _Run) -> _Next:
        action = guarded.policy.action(guarded.call.tool_name, takes_key=guarded.takes_key)
        if action == "retry":
            return retry
        if action == "ask":
            return asked
        if action == "raise":
            call = guarded.call
            raise UnknownOutcome(
                f"Call {call.call_id!r} ({call.tool_name}) of thread {call.thread_id!r} started at "
                f"{asked.started_at} and has no recorded outcome. Decide about it with "
                f"`graph-agent recover --db {self._journal.path}`, then run the graph again."
            )
        answer = Answer("cancel", "policy", self._journal.now())
        return self._decide(guarded, asked.question.attempt, "error", _UNKNOWN.format(asked.started_at), answer)

    def _decide(self, guarded: GuardedCall, attempt: int, status: str, text: str, answer: Answer) -> Result:
        message = _message(guarded, status, text)
        decision = {"decision": answer.kind, "decided_by": answer.by, "reason": answer.reason}
        if answer.kind in ("reject", "cancel"):
            outcome = "rejected" if answer.kind == "reject" else "cancelled"
            decision.update(status="cancelled", outcome=outcome)
        if self._journal.decide(guarded.call, attempt, self._dump(message), decision):
            return message
        outcome_by_now = self._journal.entry(guarded.call).outcome
        return message if outcome_by_now is None else self._load(outcome_by_now, guarded)

    def _finish(self, claim: Claim, result: Any) -> None:
        with _recorded_failure(self._journal, claim):
            outcome = self._dump(result)
        if not self._journal.finish(claim, outcome):
            raise CallTakenOver(
                f"While call {claim.call.call_id!r} ({claim.call.tool_name}) ran here, somebody else decided "
                "about it or started it again; what it returned here is not recorded. Stop this run."
            )

    def _dump(self, result: Any) -> dict[str, Any]:
        """The outcome as the journal stores it: text for readers, and the packed result for replays."""
        message = _first_message(result)
        try:
            kind, packed = self._serializer.dumps_typed(result)
        except (TypeError, ValueError) as error:
            if not isinstance(result, ToolMessage):
                raise
            # The result itself must survive; only what cannot be stored is left out of the replay.
            _LOG.warning("an artifact is not in the journal, as it cannot be stored: %s", error)
            kind, packed = self._serializer.dumps_typed(result.model_copy(update={"artifact": None}))
        return {
            "status": "error" if message is not None and message.status == "error" else "success",
            "output": "" if message is None else plain_text(message.content),
            "error": None,
            "summary": "",
            "metadata": {"packed": [kind, base64.b64encode(packed).decode("ascii")]},
        }

    def _load(self, outcome: Mapping[str, Any], guarded: GuardedCall) -> Result:
        packed = outcome.get("metadata", {}).get("packed")
        if packed is None:  # Recorded by hand, or by a command.
            return _message(guarded, str(outcome["status"]), str(outcome.get("output", "")))
        return _as_returned(self._serializer.loads_typed((packed[0], base64.b64decode(packed[1]))))


_CHANGED = (
    "Call {0} was not run: a call of {1} with this id and other arguments is already recorded in this "
    "conversation. Call the tool again, with a new id."
)
_REJECTED = "The user rejected this call; it was not run.{}"
_CANCELLED = (
    "This call was started, was interrupted, and is cancelled. It may have taken effect, fully or in part.{}"
)
_UNKNOWN = (
    "This call was started at {} and interrupted. It is unknown whether it took effect. Find out before you call "
    "it again."
)
_DONE = "This call took effect; its result was lost."


def _because(answer: Answer) -> str:
    return f" Reason: {answer.reason}" if answer.reason else ""


def _message(guarded: GuardedCall, status: str, text: str) -> ToolMessage:
    state = "error" if status == "error" else "success"
    return ToolMessage(text, name=guarded.call.tool_name, tool_call_id=guarded.tool_call_id, status=state)


def _is_same(record: Mapping[str, Any], call: JournalCall) -> bool:
    stored = json_text([record.get("tool_name"), record.get("requested_arguments")])
    return _sorted(stored) == _sorted(json_text([call.tool_name, dict(call.arguments)]))


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _failure(error: BaseException) -> tuple[str, str]:
    """Why an attempt ended without a result."""
    if isinstance(error, GraphInterrupt):
        return _PAUSED, ""
    return "outcome_unknown", f"{type(error).__name__}: {error}"[:2000]


@contextmanager
def _recorded_failure(journal: Journal, claim: Claim) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        journal.stop(claim, *_failure(error))
        raise


@contextmanager
def _as_running(claim: Claim) -> Iterator[None]:
    call = claim.call
    token = _running.set(RunningCall(call.thread_id, call.call_id, claim.attempt, idempotency_key(call)))
    try:
        yield
    finally:
        _running.reset(token)


def _as_returned(stored: Any) -> Result:
    """A stored result as the tool returned it: a node looks for the very constant of the parent graph."""
    if isinstance(stored, list):
        return [one for one in map(_as_returned, stored) if not isinstance(one, list)]
    if isinstance(stored, Command):
        graph = Command.PARENT if stored.graph == Command.PARENT else stored.graph
        return replace(stored, graph=graph, goto=stored.goto or ())
    message: ToolMessage = stored
    return message


async def run_in_thread(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """Do the work in a thread and wait for it, also when this task is cancelled meanwhile; then it is undone."""
    # Not that of tools.running: it undoes nothing, and importing it would load the tools of the agent.
    job = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        while not job.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((job,))
        if undo is not None and not job.cancelled() and job.exception() is None:
            await asyncio.to_thread(undo, job.result())
        raise


def _first_message(result: Any) -> ToolMessage | None:
    """The tool message of a result, also inside of a command."""
    if isinstance(result, ToolMessage):
        return result
    if isinstance(result, Command):
        update = result.update.get("messages", []) if isinstance(result.update, dict) else result.update
        result = update if isinstance(update, list) else []
    found = map(_first_message, result) if isinstance(result, list) else ()
    return next((message for message in found if message is not None), None)


def journal_call(
    config: Mapping[str, Any], tool_call: Mapping[str, Any], messages: Sequence[Any], *, is_read_only: bool
) -> JournalCall:
    """A call of the model as the journal knows it.

    Raises:
        ConfigError: there is no thread id, the call has no id, or its arguments are not JSON.
    """
    thread = config.get("configurable", {}).get("thread_id")
    if not thread:
        raise ConfigError(
            "Durable tool calls need the id of a thread. Run the graph with "
            "config={'configurable': {'thread_id': ...}}, and compile it with a checkpointer."
        )
    call_id = tool_call.get("id")
    if not call_id:
        raise ConfigError(
            f"The call of {tool_call.get('name')!r} has no id, so it could not be recognized when it is repeated. "
            "Pass the whole tool call: {'type': 'tool_call', 'id': ..., 'name': ..., 'args': ...}."
        )
    try:
        json.dumps(tool_call.get("args"))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"The arguments of call {call_id!r} of {tool_call['name']!r} are not JSON values ({error}), so the "
            "call could not be recognized when it is repeated. Pass only JSON values."
        ) from error
    number = _reuse_number(str(call_id), messages)
    key = str(call_id) if number == 1 else f"{call_id}#{number}"
    return JournalCall(str(thread), key, str(tool_call["name"]), dict(tool_call.get("args") or {}), is_read_only)


def _reuse_number(call_id: str, messages: Sequence[Any]) -> int:
    """How many messages of the model hold a call of this id: some servers count their calls anew in each reply."""
    found = [
        message
        for message in messages
        if any(call.get("id") == call_id for call in getattr(message, "tool_calls", None) or ())
    ]
    return max(len(found), 1)
