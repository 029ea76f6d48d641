"""A session that plays a script: what the terminal layer is tested with. Runs no graph and keeps no promises."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graph_agent.calls import ToolCallInfo, args_digest
from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind, Event, EventBus, SessionOpened, ToolCallDecided, TurnEnded, TurnStarted
from graph_agent.ports import AlwaysRules, Answer, GrantEffect, Proposal, Question, SandboxInfo, no_sandbox_info
from graph_agent.ports.background import BackgroundTask
from graph_agent.session.session import require_selectable_mode
from graph_agent.session.turn_result import OpenQuestion, TurnResult, TurnStatus

if TYPE_CHECKING:
    from graph_agent.session.session import Session as _Session
else:
    _Session = object  # The real one loads the graph.

__all__ = ["Pause", "ScriptedSession", "Turn", "approval", "recovery", "rest"]

THREAD = "thread-1"
AT = "2026-11-28T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Pause:
    """Time that passes in a turn; a stop ends it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens until the graph rests."""

    rest: TurnResult
    happens: tuple[Event | Pause, ...] = ()


def rest(status: TurnStatus = "done", answer: str = "", **more: Any) -> TurnResult:
    """A rest of the scripted thread."""
    return TurnResult(status, THREAD, "checkpoint-1", answer, **more)


def approval(call_id: str, tool_name: str, arguments: dict[str, Any], **fields: Any) -> OpenQuestion:
    """An open approval."""
    return _open("approval", _record(call_id, tool_name, arguments, "awaiting_approval", fields))


def recovery(call_id: str, tool_name: str, arguments: dict[str, Any], **fields: Any) -> OpenQuestion:
    """An open recovery question; what belongs to the question and not to its record goes there."""
    about = ("partial_output", "finding", "finding_verdict", "processes")
    known = {key: fields.pop(key) for key in about if key in fields}
    return _open("recovery", _record(call_id, tool_name, arguments, "interrupted", fields), **known)


_ALWAYS = {"allow": "always", "deny": "always deny"}


class ScriptedSession(_Session):
    """Plays its opening for `start`, and the next turn for each `send`, `proceed` and `continue_turn`."""

    bus: EventBus
    thread_id: str
    workspace: Path
    mode: str
    model_label: str
    model_name: str | None
    by: str
    sandbox: SandboxInfo

    def __init__(
        self,
        bus: EventBus,
        workspace: Path,
        turns: Sequence[Turn] = (),
        *,
        opening: Turn | None = None,
        elsewhere: Path | None = None,
    ) -> None:
        self.bus = bus
        self.thread_id = THREAD
        self.workspace = workspace
        self.mode = "default"
        self.model_label = "scripted model"
        self.models: tuple[str, ...] = ("one", "two")
        self.model_name: str | None = "one"
        self.by = "chat pid 1"
        self.sandbox = no_sandbox_info()
        self.log: list[tuple[str, ...]] = []
        """What was asked of the session, in order."""
        self.refusals: dict[str, str] = {}
        """Calls whose edits are refused, and with which words."""
        self.background: list[BackgroundTask] = []
        self._inbox: dict[int, str] = {}
        self._last_number = 0
        self._turns = list(turns)
        self._opening = opening
        self._elsewhere = elsewhere
        self._open: dict[str, OpenQuestion] = {}
        self._decided: dict[str, Answer] = {}
        self._halt: asyncio.Event = asyncio.Event()
        self._halts_by = ""
        self.closed = False

    async def start(self) -> TurnResult:
        self._note("start")
        self.bus.publish(SessionOpened(self.thread_id, "", str(self.workspace), self.model_label, self.mode))
        return rest() if self._opening is None else await self._play(self._opening)

    async def send(self, text: str, attachment: str = "") -> TurnResult:
        self._note("send", *filter(None, (text, attachment)))
        self.bus.publish(TurnStarted(text))
        return await self._play(self._turns.pop(0))

    async def queue(self, text: str, *, is_urgent: bool = False) -> int:
        self._note("queue", text, *(("urgent",) if is_urgent else ()))
        self._last_number += 1
        self._inbox[self._last_number] = text
        return self._last_number

    async def mark_queued_urgent(self) -> int:
        self._note("mark urgent")
        return len(self._inbox)

    async def queued(self) -> list[tuple[int, str]]:
        return list(self._inbox.items())

    async def remove_queued(self, number: int) -> bool:
        self._note("take back", self._inbox.get(number, ""))
        # As in the inbox, the newest number is free again.
        self._last_number -= number == self._last_number
        return self._inbox.pop(number, None) is not None

    async def move_queued(self, number: int, thread_id: str) -> int | None:
        self._note("hand over", self._inbox.get(number, ""), thread_id)
        return number if number in self._inbox else None

    async def send_queued(self, attachment: str = "") -> TurnResult | None:
        return await self.send(self._inbox.pop(min(self._inbox)), attachment) if self._inbox else None

    def hold(self, text: str) -> None:
        """Have a message in the queue from the beginning, as a run that was opened with a prompt has."""
        self._last_number += 1
        self._inbox[self._last_number] = text

    async def continue_turn(self, *, keeps_stopped: bool = False) -> TurnResult:
        self._note("continue")
        if not self._turns:
            return rest()
        self.bus.publish(TurnStarted())
        return await self._play(self._turns.pop(0))

    async def compact(self) -> TurnResult:
        self._note("compact")
        return await self._play(self._turns.pop(0))

    async def decide(
        self,
        question: Question,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: AlwaysRules | None = None,
        outside: bool = False,
    ) -> Answer:
        if standing := (await self.answers_from_others()).get(question.call_id):
            if standing.kind != kind:
                raise AnswerRefused(
                    f"Call {question.call_id!r} already has an answer: {standing.kind} by {standing.by}"
                )
            return standing
        if question != self._open[question.call_id].question:
            raise AnswerRefused(f"The question about call {question.call_id} is no longer open.")
        answer = Answer(kind, self.by, AT, arguments, reason, outside)
        self._decided[question.call_id] = answer
        edited = () if arguments is None else (json.dumps(arguments),)
        granted = () if always is None else (f"{_ALWAYS[always.effect]} {always.scope}", *always.rules)
        out = ("outside",) if outside else ()
        self._note("decide", question.call_id, kind, reason, *edited, *granted, *out)
        self.bus.publish(ToolCallDecided(question.call_id, kind, self.by, reason))
        return answer

    async def change_mode(self, mode: str) -> None:
        self.mode = require_selectable_mode(mode)

    async def model_names(self) -> tuple[str, ...]:
        return self.models

    async def switch_model(self, name: str) -> None:
        self._note("model", name)
        self.model_name = name
        self.model_label = f"{name} @ scripted"

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        if question.call_id in self.refusals:
            raise AnswerRefused(self.refusals.pop(question.call_id))
        item = self._open[question.call_id]
        call = {**item.call, "arguments": dict(arguments), "preview": {"kind": "text", "text": "as edited"}}
        asked = replace(item.question, reason="policy asks again")
        return replace(item, call=cast("ToolCallInfo", call), question=asked)

    async def propose_grant(
        self, question: Question, arguments: Mapping[str, Any] | None = None, effect: GrantEffect = "allow"
    ) -> Proposal:
        call = self._open[question.call_id].call
        given = call["arguments"] if arguments is None else arguments
        if "command" not in given:
            return Proposal(objection="It names no command.")
        return Proposal(tuple(f"{call['tool_name']}({part})" for part in str(given["command"]).split(" && ")))

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        self._note("end", question.call_id)
        return ()

    async def proceed(self) -> TurnResult:
        self._note("proceed")
        answered = {*self._decided, *await self.answers_from_others()}
        waiting = tuple(item for call_id, item in self._open.items() if call_id not in answered)
        if waiting:
            is_broken = any(item.question.kind == "recovery" for item in waiting)
            return rest("interrupted" if is_broken else "awaiting_approval", questions=waiting)
        return await self._play(self._turns.pop(0))

    async def answers_from_others(self) -> dict[str, Answer]:
        if self._elsewhere is None or not self._elsewhere.exists():
            return {}
        said: dict[str, AnswerKind] = json.loads(self._elsewhere.read_text() or "{}")
        return {call_id: Answer(kind, "cli pid 99", AT) for call_id, kind in said.items() if call_id in self._open}

    @property
    def background_count(self) -> int:
        return sum(one.kind == "command" for one in self.background)

    async def tasks(self) -> list[BackgroundTask]:
        return list(self.background)

    async def stop_task(self, task_id: str) -> bool:
        self._note("stop task", task_id)
        self.background = [one for one in self.background if one.task_id != task_id]
        return True

    async def task_output(self, task_id: str) -> str:
        return f"output of {task_id} [red]\n\x1b[2J"

    async def stop(self) -> TurnResult:
        self._note("stop")
        self._open.clear()
        self._halts_by = "stop"
        self._halt.set()
        return rest("stopped")

    async def shut_down(self) -> None:
        self._note("suspend")
        self._halts_by = "suspend"
        self._halt.set()

    async def close(self) -> None:
        self._note("close")
        self.closed = True

    async def _play(self, turn: Turn) -> TurnResult:
        self._halt.clear()
        self._open = {item.question.call_id: item for item in turn.rest.questions}
        for happening in turn.happens:
            if not isinstance(happening, Pause):
                self.bus.publish(happening)
            elif await self._halted(happening.seconds):
                if self._halts_by == "suspend":
                    raise asyncio.CancelledError
                return rest("stopped")
        self.bus.publish(TurnEnded(turn.rest.status, turn.rest.answer))
        return turn.rest

    async def _halted(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._halt.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _note(self, *entry: str) -> None:
        self.log.append(entry)


def _open(kind: Any, call: ToolCallInfo, **known: Any) -> OpenQuestion:
    digest = args_digest(call["call_id"], call["tool_name"], call.get("attempt", 1), call["arguments"])
    return OpenQuestion(
        Question(kind, call["call_id"], call.get("attempt", 1), digest, call.get("reason", "")), call, **known
    )


def _record(
    call_id: str, tool_name: str, arguments: dict[str, Any], status: Any, fields: Mapping[str, Any]
) -> ToolCallInfo:
    call: dict[str, Any] = {
        "call_id": call_id,
        "tool_name": tool_name,
        "arguments": arguments,
        "status": status,
        "result": None,
        "error_msg": None,
        "attempt": 1,
        "risk": "medium",
        **fields,
    }
    return call  # type: ignore[return-value]  # a scripted record may hold what a real one would not
