"""The toolbox that reads ahead: local reads of a reply begin while the rest of it still streams in.

Only what no rule asks about, inside the workspace, and with nothing but reads before it in the same reply: a read
behind a write has to see what was written. The result waits in memory for the run of that very call.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Delta, FileStates, Outcome, PreparedCall, Scope
from graph_agent.toolbox.tool_context import Told, ToolboxPorts
from graph_agent.toolbox.toolbox import GraphToolbox, guarded

__all__ = ["ReadingToolbox"]

_FRESH_SECONDS = 15.0
"""What was read longer ago, because a person was asked meanwhile perhaps, is read again."""
_READS = frozenset(("glob", "grep", "ls", "read_file"))

_State = tuple[str, str, str]

_noted: ContextVar[list[_State] | None] = ContextVar("noted", default=None)
"""Where an early read leaves what it would note; None outside of one."""


@dataclass(frozen=True, slots=True)
class _HeldStates:
    """Notes of what was read are held back within an early read: the model has not been told of it yet."""

    states: FileStates

    async def get(self, thread_id: str, path: str) -> str | None:
        return await self.states.get(thread_id, path)

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        held = _noted.get()
        if held is None:
            await self.states.set(thread_id, path, sha256)
        else:
            held.append((thread_id, path, sha256))


@dataclass(frozen=True, slots=True)
class _Found:
    plan: PreparedCall
    outcome: Outcome
    noted: Sequence[_State]


@dataclass(slots=True)
class _Early:
    name: str
    arguments: dict[str, Any]
    reading: "asyncio.Task[_Found | None]"
    since: float = field(default_factory=time.monotonic)


class ReadingToolbox(GraphToolbox):
    """Implements `graph_agent.ports.Toolbox` and `EarlyReads`."""

    def __init__(self, *args: Any, ports: ToolboxPorts, workspace: Path, **options: Any) -> None:
        def on_progress(call_id: str, told: Told) -> None:
            if _noted.get() is None:
                ports.on_progress(call_id, told)

        held = replace(ports, file_states=_HeldStates(ports.file_states), on_progress=on_progress)
        super().__init__(*args, ports=held, workspace=workspace, **options)
        self._root = workspace.resolve()
        self._states = ports.file_states
        self._scope = Scope("", "default")
        self._texts: dict[int, list[str]] = {}
        self._early: dict[int, _Early] = {}
        """By the position of the call in its reply."""
        self._judged: list[tuple[dict[str, Any], PreparedCall]] = []
        """What calls of the reply were judged to be, by the arguments as the model wrote them."""

    def begin(self, scope: Scope) -> None:
        """See the port."""
        self.finish(())
        self._judged.clear()
        self._scope = scope

    def add_delta(self, delta: Delta) -> None:
        """See the port."""
        if delta.kind == "retry":
            self.finish(())
        if delta.kind != "tool_call":
            return
        if stale := self._early.pop(delta.index, None):
            stale.reading.cancel()
        texts = self._texts.setdefault(delta.index, [])
        texts.append(delta.text)
        is_next = set(self._early) == set(range(delta.index))
        if not is_next or delta.tool_name not in _READS or not delta.text.rstrip().endswith("}"):
            return
        arguments = _object("".join(texts))
        if arguments is not None:
            before = self._early.get(delta.index - 1)
            reading = asyncio.create_task(self._read(delta.tool_name, arguments, before))
            self._early[delta.index] = _Early(delta.tool_name, arguments, reading)

    def finish(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """See the port."""
        wanted = dict(enumerate(calls))
        for place, early in list(self._early.items()):
            if wanted.get(place) != (early.name, early.arguments):
                self._early.pop(place).reading.cancel()
        self._texts.clear()

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """See the port; a call that is read ahead was judged a moment ago, and is judged no second time."""
        for known in self._judged:
            is_it = (known[1].tool_name, known[0]) == (tool_name, arguments)
            if is_it and _place(scope) == _place(self._scope):
                self._judged.remove(known)
                return known[1]
        return await super().prepare(tool_name, arguments, scope, call_id, attempt)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """See the port."""
        found = await self._taken(call, scope) if call["tool_name"] in _READS else None
        if found is None or not self._is_fit(found.outcome, scope):
            return await super().run(call, scope)
        for state in found.noted:
            await self._states.set(*state)
        return found.outcome

    def _is_fit(self, outcome: Outcome, scope: Scope) -> bool:
        """Whether it is what a run would give now that it is known what stands before the model, and beside it.

        What read ahead is whole; what the model has before it already is answered shortly, and what is more than
        this call's share of the room is cut.
        """
        is_repeated = outcome.metadata.get("shown") in scope.shown
        return not is_repeated and len(outcome.output) <= self.room_for(scope)

    async def _taken(self, call: ToolCallInfo, scope: Scope) -> _Found | None:
        """What was read ahead for this call, once."""
        for place, early in list(self._early.items()):
            if early.name != call["tool_name"] or (scope.thread_id, scope.cwd) != (
                self._scope.thread_id,
                self._scope.cwd,
            ):
                continue
            await asyncio.wait({early.reading})
            found = None if early.reading.cancelled() else early.reading.result()
            if found is not None and found.plan.arguments == call["arguments"]:
                self._early.pop(place, None)
                return found if time.monotonic() - early.since < _FRESH_SECONDS else None
        return None

    async def _read(self, name: str, arguments: dict[str, Any], before: _Early | None) -> _Found | None:
        """The result, or None: it may not begin before it is marked, or did not end well."""
        if before is not None:
            await asyncio.wait({before.reading})
            if before.reading.cancelled() or before.reading.result() is None:
                return None
        return await guarded(self._read_quietly(name, arguments, self._scope), None)

    async def _read_quietly(self, name: str, arguments: dict[str, Any], scope: Scope) -> _Found | None:
        plan = await super().prepare(name, arguments, scope)
        if not self._may_begin(plan):
            return None
        # A grant may be revoked at any time; rules stay what they are while the program runs.
        if scope is self._scope and not plan.rule.startswith("grant "):
            self._judged.append((arguments, plan))
        noted: list[_State] = []
        _noted.set(noted)  # of this task alone
        call: Any = {"call_id": "", "tool_name": plan.tool_name, "arguments": plan.arguments, "paths": plan.paths}
        outcome = await super().run(call, scope)
        return _Found(plan, outcome, tuple(noted)) if outcome.status == "success" else None

    def _may_begin(self, plan: PreparedCall) -> bool:
        is_read = (plan.verdict, plan.kind, plan.risk) == ("allow", "readonly", "low")
        inside = bool(plan.paths) and all(Path(path).is_relative_to(self._root) for path in plan.paths)
        return is_read and plan.concurrency_safe and inside


def _place(scope: Scope) -> tuple[str, str, str]:
    return scope.thread_id, scope.mode, scope.cwd


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
