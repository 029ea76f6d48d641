"""The context a tool runs with, made from the thread's scope and the ports of the session."""

import logging
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, assert_never

from graph_agent.calls import ToolCallInfo, process_marker
from graph_agent.config.redaction import Redactor
from graph_agent.errors import StorageError
from graph_agent.events import ProgressKind
from graph_agent.ports import Blobs, FileStates, Grant, Grants, GrantScope, JournalRow, Scope
from graph_agent.toolbox.facts import host_permission
from graph_agent.toolbox.path_facts import RuleNames, Setting, names_in_rules, other_names
from policy import CallFacts, InvalidRule, PathFact, PolicySettings, evaluate, filters_files, may_read, parse_rule
from policy import Grant as GrantedRules
from tools.base import BytesFetched, FilesSearched, McpProgress, ShellOutput, SubAgentStep
from tools.context import Limits, Progress, ToolContext, allow_any_path
from tools.paths import PathRefused
from tools.result import ToolErrorType
from tools.sandbox import Sandbox
from tools.shell_ops.process import Process, ProcessTraces, find_processes, send_signal

__all__ = [
    "NoGrants",
    "Process",
    "ProcessTraces",
    "RecordProcess",
    "RecordedProcesses",
    "StoredBlobs",
    "Surroundings",
    "Told",
    "ToolboxPorts",
    "admitted_paths",
    "find_processes",
    "granted",
    "progress_in_words",
    "recorded_traces",
    "send_signal",
    "with_grants",
]

RecordProcess = Callable[[str, str, int, int, str], Awaitable[None]]
"""Thread, call, attempt, process group, start time; durable when it returns."""


class StoredBlobs:
    """Blobs that fail as tools expect it: absence is a LookupError, trouble with the disk an OSError."""

    def __init__(self, blobs: Blobs, scrub: Redactor | None = None) -> None:
        self._blobs = blobs
        self._scrub = scrub or Redactor()

    def put(self, data: bytes) -> str:
        """See `tools.base.BlobStore`; secrets are kept out."""
        try:
            return self._blobs.put(self._scrub.data(data))
        except StorageError as error:
            raise OSError(str(error)) from error

    def get(self, reference: str) -> bytes:
        """See `tools.base.BlobStore`."""
        try:
            return self._blobs.get(reference)
        except StorageError as error:
            raise LookupError(str(error)) from error

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """See `tools.base.BlobStore`."""
        return self._blobs.spool(thread_id, call_id, attempt)


class RecordedProcesses:
    """The process ledger over the journal's function."""

    def __init__(self, record_process: RecordProcess) -> None:
        self._record_process = record_process

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        """See `tools.base.ProcessRecorder`."""
        await self._record_process(context.thread_id, context.call_id, context.attempt, group, start_time)


class Told(NamedTuple):
    """Progress as the event about a running call carries it."""

    kind: ProgressKind
    text: str
    """In words, what the numbers say included."""
    done: float | None = None
    total: float | None = None


def progress_in_words(progress: Progress) -> Told:
    """What is told of it, in words and where there are any in numbers."""
    match progress:
        case ShellOutput(text):
            return Told("shell_output", text)
        case BytesFetched(done, total):
            words = f"{done} of {total} bytes{_percent(done, total)}" if total else f"{done} bytes"
            return Told("bytes_fetched", words, done, total or None)
        case FilesSearched(count):
            return Told("files_searched", f"{count} files", count)
        case McpProgress(done, total, message):
            done, total = _finite(done) or 0, _finite(total)
            counted = f"{done:g} of {total:g}{_percent(done, total)}" if total else f"{done:g}"
            words = f"{message}  {counted}" if message and total else message or counted
            return Told("mcp_progress", words, done, total)
        case SubAgentStep(step, text):
            return Told("sub_agent_step", f"step {step}: {text}" if step else text, step or None)
        case _:
            assert_never(progress)


def _percent(done: float, total: float) -> str:
    return f" ({100 * done / total:.0f} %)" if 0 <= done <= total else ""


def _finite(number: float | None) -> float | None:
    """A server may tell what is no number; JSON has no word for it."""
    return number if number is not None and math.isfinite(number) else None


_log = logging.getLogger(__name__)

_WHERE: dict[GrantScope, str] = {"thread": "this thread", "project": "this project", "user": "everywhere"}


async def with_grants(setting: Setting, grants: Grants, scope: Scope) -> PolicySettings:
    """The settings with what was allowed always and holds here and now."""
    return granted(setting.policy, await grants.in_force(scope.thread_id, str(setting.workspace)))


def granted(policy: PolicySettings, holding: Iterable[Grant]) -> PolicySettings:
    """The settings with these grants; one whose rules cannot be read allows nothing."""
    read = map(_read, holding)
    return replace(policy, grants=tuple(grant for grant in read if grant is not None))


def _read(grant: Grant) -> GrantedRules | None:
    try:
        rules = tuple(parse_rule(text, is_literal=True) for text in grant.rules)
    except InvalidRule as error:
        _log.warning("grant %s is not used: %s", grant.id, error)
        return None
    return GrantedRules(f"grant {grant.id} ({_WHERE[grant.scope]})", grant.mode, rules, grant.folder)


class NoGrants:
    """Nothing was ever allowed always."""

    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:  # noqa: ARG002 - port
        """None."""
        return []

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:  # noqa: ARG002 - port
        """None to take back."""
        return None


def _silent(call_id: str, told: Told) -> None: ...


async def _at_once() -> None: ...


@dataclass(frozen=True)
class ToolboxPorts:
    """What the toolbox needs of the world."""

    blobs: Blobs
    file_states: FileStates
    record_process: RecordProcess
    on_progress: Callable[[str, Told], None] = _silent
    """Call id, and what is told of its progress."""
    grants: Grants = field(default_factory=NoGrants)
    scrub: Redactor = field(default_factory=Redactor)
    """Hides what must not be kept."""
    sandbox: Sandbox | None = None
    servers_settled: Callable[[], Awaitable[None]] = _at_once
    """Waits until every server has its tools, or never will; a call may come before its server is there."""
    why_missing: Callable[[str], str] = lambda _: ""
    """Why there is no tool of a name; empty where nothing is known of one."""


class Surroundings:
    """Makes contexts; what all of them share is made once."""

    def __init__(self, setting: Setting, ports: ToolboxPorts, limits: Limits) -> None:
        self.setting = setting
        self.limits = limits
        self.blobs = StoredBlobs(ports.blobs, ports.scrub)
        self._ports = ports

    def of_thread(self, scope: Scope) -> ToolContext:
        """What every use of a tool in the thread has in common; without the means to have an effect."""
        return ToolContext(
            self.setting.workspace,
            roots=self.setting.roots,
            thread_id=scope.thread_id,
            cwd=Path(scope.cwd) if scope.cwd else None,
            file_states=self._ports.file_states,
            blobs=self.blobs,
            limits=self.limits,
        )

    def of_call(self, call: ToolCallInfo, scope: Scope) -> ToolContext:
        """What one attempt of a call runs with."""
        return replace(
            self.of_thread(scope),
            call_id=call["call_id"],
            attempt=call.get("attempt", 1),
            mark=process_marker(call.get("owner_token", ""), call["call_id"], call.get("attempt", 1)),
            todo=scope.todo,
            shown=scope.shown,
            answer=call.get("answer"),
            processes=RecordedProcesses(self._ports.record_process),
            progress=lambda progress: self._report(call["call_id"], progress),
            sandbox=None if call.get("outside_sandbox") else self._ports.sandbox,
            may_read=self._may_read() if filters_files(self.setting.policy.rules) else allow_any_path,
            host_permission=lambda host: host_permission(host, scope, self.setting),
            observed=(call.get("preview") or {}).get("observed"),
        )

    def _report(self, call_id: str, progress: Progress) -> None:
        told = progress_in_words(progress)
        self._ports.on_progress(call_id, told._replace(text=self._ports.scrub(told.text)))

    def _may_read(self) -> Callable[[Path], bool]:
        """Looks up once what the rules name: tools ask about many files."""
        return partial(_may_read, self.setting, names_in_rules(self.setting))


def _may_read(setting: Setting, named: RuleNames, path: Path) -> bool:
    policy = setting.policy
    names = (path, *other_names(path, named))
    return all(may_read(name, workspace=setting.workspace, rules=policy.rules, home=policy.home) for name in names)


def admitted_paths(facts: CallFacts, judged: Sequence[str] | None, policy: PolicySettings) -> frozenset[Path]:
    """The only paths the call may open: where its arguments lead now, if that was judged or is allowed unasked.

    Args:
        facts: the call as it is now.
        judged: where its arguments led when it was judged; None where nobody wrote that down.
        policy: what it is judged by now, where they lead elsewhere.

    Raises:
        PathRefused: somebody made them lead elsewhere, to where the call may not go unasked.
    """
    moved = [] if judged is None else [path for path in facts.paths if str(path.resolved) not in judged]
    if moved and evaluate(facts, policy).verdict != "allow":
        raise _refused(moved[0])
    return frozenset(Path(path.resolved) for path in facts.paths)


def _refused(path: PathFact) -> PathRefused:
    return PathRefused(
        ToolErrorType.PERMISSION,
        f"{path.given!r} leads to {str(path.resolved)!r} now, and led elsewhere when the call was judged. "
        "Nothing was done; make the call again.",
    )


def recorded_traces(row: JournalRow, thread_id: str, blobs: Blobs) -> ProcessTraces | None:
    """What the processes of this attempt are known by; None for one that started none."""
    if not row.process_group or not row.process_started:
        return None
    spool = os.path.realpath(blobs.spool(thread_id, row.call_id, row.attempt))
    mark = process_marker(row.owner, row.call_id, row.attempt)
    return ProcessTraces(row.process_group, row.process_started, mark, spool)
