"""The context a tool runs with: the thread's scope, and what the session provides for all tools."""

import logging
import math
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, assert_never

from graph_agent.calls import ToolCallInfo, process_marker
from graph_agent.config.paths import own_command
from graph_agent.config.redaction import Redactor
from graph_agent.errors import StorageError
from graph_agent.events import ProgressKind
from graph_agent.ports import Blobs, FileStates, Grant, Grants, GrantScope, JournalRow, Scope
from graph_agent.toolbox.facts import PolicyContext, host_permission, names_in_rules, other_names, shell_folder
from policy import Grant as GrantedRules
from policy import InvalidRule, PolicySettings, Rule, Rules, closed_paths, denied_rules, granted_rules
from tools.base import (
    BytesFetched,
    EditorBuffers,
    FilesSearched,
    Limits,
    McpProgress,
    Progress,
    ShellOutput,
    SubAgentStep,
    ToolContext,
    allow_any_path,
)
from tools.sandbox import Sandbox
from tools.shell_ops.process import Process, ProcessTraces, find_processes, send_signal

__all__ = [
    "Process",
    "ProcessTraces",
    "ProgressReport",
    "RecordProcess",
    "RecordedProcesses",
    "StoredBlobs",
    "ToolContexts",
    "ToolboxDependencies",
    "add_grants",
    "find_processes",
    "format_progress",
    "recorded_traces",
    "send_signal",
]

RecordProcess = Callable[[str, str, int, int, str], Awaitable[None]]
"""Takes thread, call, attempt, process group and its start time; the record is durable when it returns."""

_GRANT_SCOPES: dict[GrantScope, str] = {"thread": "this thread", "project": "this project", "user": "everywhere"}

_log = logging.getLogger(__name__)


class ProgressReport(NamedTuple):
    """Progress as the event about a running call carries it."""

    kind: ProgressKind
    text: str
    """In words, including the numbers."""
    done: float | None = None
    total: float | None = None


async def _return_at_once() -> None: ...


async def _find_none(thread_id: str) -> str:  # noqa: ARG001 - as a field of the dependencies
    return ""


@dataclass(frozen=True)
class ToolboxDependencies:
    """What the toolbox needs from storage and session."""

    blobs: Blobs
    file_states: FileStates
    record_process: RecordProcess
    on_progress: Callable[[str, ProgressReport], None] = lambda _call_id, _report: None
    grants: Grants | None = None
    """None: no grants."""
    redact: Redactor = field(default_factory=Redactor)
    sandbox: Sandbox | None = None
    find_untrusted_content: Callable[[str], Awaitable[str]] = _find_none
    """What a thread contains that is neither the user's nor a trusted folder's, in words; empty for nothing."""
    wait_for_servers: Callable[[], Awaitable[None]] = _return_at_once
    """Waits until every server has its tools or has failed: a call may come before its server is ready."""
    explain_missing: Callable[[str], str] = lambda _name: ""
    """Why there is no tool of a name; empty if unknown."""
    buffers: EditorBuffers | None = None


class ToolContexts:
    """Creates the contexts of all tools of a session."""

    def __init__(self, policy_context: PolicyContext, dependencies: ToolboxDependencies, limits: Limits) -> None:
        self.policy_context = policy_context
        self.limits = limits
        self.blobs = StoredBlobs(dependencies.blobs, dependencies.redact)
        self._dependencies = dependencies

    def context_with(self, rules: Rules) -> PolicyContext:
        """What policy evaluates calls with while these rules hold; grants that allow are left out."""
        return self.policy_context._replace(policy=replace(self.policy_context.policy, rules=rules))

    def for_thread(self, scope: Scope) -> ToolContext:
        """The context of every use of a tool in the thread, without anything to have an effect with."""
        return ToolContext(
            self.policy_context.workspace,
            has_policy=True,
            roots=self.policy_context.roots,
            thread_id=scope.thread_id,
            cwd=shell_folder(scope.cwd, self.policy_context),
            file_states=self._dependencies.file_states,
            blobs=self.blobs,
            buffers=self._dependencies.buffers,
            limits=self.limits,
        )

    def for_call(self, call: ToolCallInfo, scope: Scope, rules: Rules) -> ToolContext:
        """The context of one attempt at a call.

        Args:
            rules: those that hold now, with what a person always denies: they hold for what the call finds, too.
        """
        policy = self.context_with(rules)

        def report(progress: Progress) -> None:
            shown = format_progress(progress)
            shown = shown._replace(text=self._dependencies.redact(shown.text))
            self._dependencies.on_progress(call["call_id"], shown)

        attempt = call.get("attempt", 1)
        return replace(
            self.for_thread(scope),
            call_id=call["call_id"],
            attempt=attempt,
            mark=process_marker(call.get("owner_token", ""), call["call_id"], attempt),
            todo=scope.todo,
            shown=scope.shown,
            answer=call.get("answer"),
            processes=RecordedProcesses(self._dependencies.record_process),
            progress=report,
            sandbox=None if call.get("outside_sandbox") else self._dependencies.sandbox,
            may_read=_file_filter(policy),
            host_permission=lambda host: host_permission(host, scope, policy),
            observed=(call.get("preview") or {}).get("observed"),
        )


def _file_filter(context: PolicyContext) -> Callable[[Path], bool]:
    """Whether rules let a tool read a file it finds; links in rules are looked up once for many files."""
    workspace, policy, *_ = context
    closed = [one for one in closed_paths(policy.rules.deny, workspace, policy.home) if one.access == "read"]
    if not closed:
        return allow_any_path
    known = names_in_rules(context)

    def is_readable(path: Path) -> bool:
        names = (path, *other_names(path, known))
        return not any(one.covers(str(name)) for one in closed for name in names)

    return is_readable


class StoredBlobs:
    """A `tools.base.BlobStore` without secrets: a missing blob is a LookupError, a disk failure an OSError."""

    def __init__(self, blobs: Blobs, redact: Redactor | None = None) -> None:
        self._blobs = blobs
        self._redact = redact or Redactor()

    def put(self, data: bytes) -> str:
        """See `BlobStore`."""
        try:
            return self._blobs.put(self._redact.data(data))
        except StorageError as error:
            raise OSError(str(error)) from error

    def get(self, reference: str) -> bytes:
        """See `BlobStore`."""
        try:
            return self._blobs.get(reference)
        except StorageError as error:
            raise LookupError(str(error)) from error

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """See `BlobStore`."""
        return self._blobs.spool(thread_id, call_id, attempt)


@dataclass(frozen=True, slots=True)
class RecordedProcesses:
    """A `tools.base.ProcessRecorder` that writes to the journal."""

    record_process: RecordProcess

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        """See `ProcessRecorder`."""
        await self.record_process(context.thread_id, context.call_id, context.attempt, group, start_time)


def format_progress(progress: Progress) -> ProgressReport:
    """The progress in words and, if there are any, in numbers."""
    match progress:
        case ShellOutput(text):
            return ProgressReport("shell_output", text)
        case BytesFetched(done, total):
            text = f"{done} of {total} bytes{_percent(done, total)}" if total else f"{done} bytes"
            return ProgressReport("bytes_fetched", text, done, total or None)
        case FilesSearched(count):
            return ProgressReport("files_searched", f"{count} files", count)
        case McpProgress(done, total, message):
            # A server may send infinity or NaN, which JSON cannot express.
            done = done if math.isfinite(done) else 0
            total = total if total is not None and math.isfinite(total) else None
            numbers = f"{done:g} of {total:g}{_percent(done, total)}" if total else f"{done:g}"
            text = f"{message}  {numbers}" if message and total else message or numbers
            return ProgressReport("mcp_progress", text, done, total)
        case SubAgentStep(step, text):
            return ProgressReport("sub_agent_step", f"step {step}: {text}" if step else text, step or None)
        case _ as never:
            assert_never(never)


def _percent(done: float, total: float) -> str:
    return f" ({100 * done / total:.0f} %)" if 0 <= done <= total else ""


def add_grants(policy: PolicySettings, grants: Iterable[Grant]) -> PolicySettings:
    """The settings with these grants; one whose rules cannot be read allows nothing.

    Raises:
        StorageError: the rules of one that denies cannot be read.
    """
    readable: list[GrantedRules] = []
    denied: list[Rule] = []
    for grant in grants:
        name = f"grant {grant.id} ({_GRANT_SCOPES[grant.scope]})"
        try:
            if grant.effect == "deny":
                denied += denied_rules(grant.rules, grant.prefixes, name)
                continue
            rules = granted_rules(grant.rules, grant.folders, grant.folder, grant.prefixes)
        except InvalidRule as error:
            if grant.effect == "deny":
                revoke = f"`{own_command()} policy revoke {grant.id}`"
                raise StorageError(f"What {name} denies cannot be read: {error}. Revoke it: {revoke}.") from error
            _log.warning("grant %s is not used: %s", grant.id, error)
            continue
        readable.append(GrantedRules(name, grant.mode, rules))
    rules_with_denied = replace(policy.rules, deny=(*policy.rules.deny, *denied))
    return replace(policy, grants=tuple(readable), rules=rules_with_denied)


def recorded_traces(row: JournalRow, thread_id: str, blobs: Blobs) -> ProcessTraces | None:
    """What identifies the processes of an attempt; None if it started none."""
    if not row.process_group or not row.process_started:
        return None
    spool = os.path.realpath(blobs.spool(thread_id, row.call_id, row.attempt))
    mark = process_marker(row.owner, row.call_id, row.attempt)
    return ProcessTraces(row.process_group, row.process_started, mark, spool)
