"""A toolbox that reads early: local reads of a reply begin while the rest of the reply still streams in.

Only reads that no rule asks about, inside the workspace, with nothing but reads before them in the same reply: a
read behind a write has to see what was written. A result stays in memory until that very call runs.
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
from graph_agent.toolbox.tool_context import ProgressReport, ToolboxDependencies
from graph_agent.toolbox.toolbox import GraphToolbox, await_or_default

__all__ = ["EarlyReadToolbox"]

_MAX_AGE_S = 15.0
"""An older result, perhaps because a person was asked meanwhile, is read again."""
_READS = frozenset(("glob", "grep", "ls", "read_file"))

_FileState = tuple[str, str, str]

_deferred_states: ContextVar[list[_FileState] | None] = ContextVar("deferred_states", default=None)
"""Where an early read leaves the file states it would store; None outside of one."""


@dataclass(frozen=True, slots=True)
class _DeferringStates:
    """Defers the file states of an early read: the model does not know the content yet."""

    states: FileStates

    async def get(self, thread_id: str, path: str) -> str | None:
        return await self.states.get(thread_id, path)

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        deferred = _deferred_states.get()
        if deferred is None:
            await self.states.set(thread_id, path, sha256)
        else:
            deferred.append((thread_id, path, sha256))


@dataclass(frozen=True, slots=True)
class _ReadResult:
    plan: PreparedCall
    outcome: Outcome
    states: Sequence[_FileState]


@dataclass(slots=True)
class _EarlyRead:
    name: str
    arguments: dict[str, Any]
    task: "asyncio.Task[_ReadResult | None]"
    since: float = field(default_factory=time.monotonic)

    async def result(self) -> _ReadResult | None:
        """What was read; None if the read was cancelled, failed or was not allowed to begin."""
        await asyncio.wait({self.task})
        return None if self.task.cancelled() else self.task.result()


class EarlyReadToolbox(GraphToolbox):
    """Implements `graph_agent.ports.Toolbox` and `EarlyReads`."""

    def __init__(self, *args: Any, dependencies: ToolboxDependencies, workspace: Path, **options: Any) -> None:
        def on_progress(call_id: str, report: ProgressReport) -> None:
            if _deferred_states.get() is None:
                dependencies.on_progress(call_id, report)

        deferring = replace(
            dependencies, file_states=_DeferringStates(dependencies.file_states), on_progress=on_progress
        )
        super().__init__(*args, dependencies=deferring, workspace=workspace, **options)
        self._root = workspace.resolve()
        self._states = dependencies.file_states
        self._scope = Scope("", "default")
        self._texts: dict[int, list[str]] = {}
        self._reads: dict[int, _EarlyRead] = {}
        """By the position of the call in its reply."""
        self._prepared: list[tuple[dict[str, Any], PreparedCall]] = []
        """Prepared calls of the reply, with the arguments as the model wrote them."""

    def begin(self, scope: Scope) -> None:
        """See the port."""
        self.finish(())
        self._prepared.clear()
        self._scope = scope

    def add_delta(self, delta: Delta) -> None:
        """See the port."""
        if delta.kind == "retry":
            self.finish(())
        if delta.kind != "tool_call":
            return
        if stale := self._reads.pop(delta.index, None):
            stale.task.cancel()
        texts = self._texts.setdefault(delta.index, [])
        texts.append(delta.text)
        is_next = set(self._reads) == set(range(delta.index))
        if not is_next or delta.tool_name not in _READS or not delta.text.rstrip().endswith("}"):
            return
        try:
            arguments = json.loads("".join(texts))
        except (ValueError, RecursionError):
            return
        if isinstance(arguments, dict):
            work = self._read(delta.tool_name, arguments, self._reads.get(delta.index - 1))
            self._reads[delta.index] = _EarlyRead(delta.tool_name, arguments, asyncio.create_task(work))

    def finish(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """See the port."""
        wanted = dict(enumerate(calls))
        for position, read in list(self._reads.items()):
            if wanted.get(position) != (read.name, read.arguments):
                self._reads.pop(position).task.cancel()
        self._texts.clear()

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """See the port; a call that was prepared for an early read is not prepared again."""
        own = self._scope
        if (scope.thread_id, scope.mode, scope.cwd) == (own.thread_id, own.mode, own.cwd):
            for known in self._prepared:
                if (known[1].tool_name, known[0]) == (tool_name, arguments):
                    self._prepared.remove(known)
                    return known[1]
        return await super().prepare(tool_name, arguments, scope, call_id, attempt)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """See the port."""
        found = await self._take(call, scope) if call["tool_name"] in _READS else None
        if found is None:
            return await super().run(call, scope)
        for state in found.states:
            await self._states.set(*state)
        return found.outcome

    async def _take(self, call: ToolCallInfo, scope: Scope) -> _ReadResult | None:
        """The result of the early read for this call, once, if a run would return the same now."""
        if (scope.thread_id, scope.cwd) != (self._scope.thread_id, self._scope.cwd):
            return None
        for position, read in list(self._reads.items()):
            if read.name != call["tool_name"]:
                continue
            found = await read.result()
            if found is None or found.plan.arguments != call["arguments"]:
                continue
            self._reads.pop(position, None)
            # An early read returns everything. A run shortens what the model still has before it, and cuts what
            # exceeds this call's share of the message.
            output = found.outcome
            is_repeated = output.metadata.get("shown") in scope.shown
            is_whole = not is_repeated and len(output.output) <= self.max_output_chars(scope)
            return found if is_whole and time.monotonic() - read.since < _MAX_AGE_S else None
        return None

    async def _read(self, name: str, arguments: dict[str, Any], before: _EarlyRead | None) -> _ReadResult | None:
        """The result; None if the read may not begin before its call is recorded, or failed."""
        if before is not None and await before.result() is None:
            return None
        return await await_or_default(self._read_now(name, arguments, self._scope), None)

    async def _read_now(self, name: str, arguments: dict[str, Any], scope: Scope) -> _ReadResult | None:
        plan = await super().prepare(name, arguments, scope)
        is_plain_read = (plan.verdict, plan.kind, plan.risk) == ("allow", "readonly", "low")
        is_inside = bool(plan.paths) and all(Path(path).is_relative_to(self._root) for path in plan.paths)
        if not (is_plain_read and plan.concurrency_safe and is_inside):
            return None
        # A grant may be revoked at any time; rules stay the same while the program runs.
        if scope is self._scope and not plan.rule.startswith("grant "):
            self._prepared.append((arguments, plan))
        states: list[_FileState] = []
        _deferred_states.set(states)  # In the context of this task only.
        call: Any = {"call_id": "", "tool_name": plan.tool_name, "arguments": plan.arguments, "paths": plan.paths}
        outcome = await super().run(call, scope)
        return _ReadResult(plan, outcome, states) if outcome.status == "success" else None
