"""Answer an approval from any process, or revoke a permission.

The graph does not run here: the process that holds the thread applies the answer, or the next one that opens it.
Edited arguments and permissions for matching calls are first checked with the tools, rules and permissions of now;
only these checks load tools and settings.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graph_agent.app.reader import read_database
from graph_agent.calls import args_digest
from graph_agent.config.paths import own_command
from graph_agent.errors import AnswerRefused, QuestionChanged, UnknownId
from graph_agent.events import EventBus
from graph_agent.inspect import CallView, Reader, StandingAnswer, Target
from graph_agent.ports import (
    AlwaysRules,
    Answer,
    Clock,
    Grant,
    GrantEffect,
    GrantScope,
    Proposal,
    Question,
    RuleChoice,
    Scope,
    SystemClock,
)
from graph_agent.session.answer_checks import attach_grant, require_valid_answer
from graph_agent.storage import open_blobs, open_database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.tasks import read_tasks
from graph_agent.storage.sqlite.threads import SqliteFileStates, ThreadTable

if TYPE_CHECKING:
    from graph_agent.toolbox import GraphToolbox

__all__ = [
    "RecordedAnswer",
    "WaitingCall",
    "answer_always",
    "answer_approval",
    "edit_approval",
    "find_waiting_call",
    "format_next_step",
    "pending_sub_agent_calls",
    "propose_rules",
    "record_answer",
    "revoke_grant",
]


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer that is stored now."""

    call_id: str
    thread_id: str
    kind: str
    accepted: bool
    """Whether it is the one just given; else somebody else was first."""
    by: str
    at: str


async def answer_approval(
    database: Path,
    text: str,
    kind: Literal["approve", "answer", "reject"],
    *,
    by: str,
    reason: str = "",
    clock: Clock | None = None,
) -> RecordedAnswer:
    """Approve, answer or reject the call that an id, a part of one or THREAD:CALL names. See `record_answer`."""
    return await record_answer(database, text, Answer(kind, by, (clock or SystemClock()).now(), reason=reason))


async def record_answer(
    database: Path, text: str, answer: Answer, *, shown: Question | None = None
) -> RecordedAnswer:
    """Record an answer to the question about the call that the text names. The first answer wins.

    The arguments of an edit are taken as they are: `edit_approval` checks them first.

    Args:
        shown: the question that the person was shown; None for whatever the call asks now.

    Raises:
        QuestionChanged: the call asks something else than was shown.
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call and nobody has answered; or it waits for another kind of answer.
    """
    with read_database(database) as reader:
        asked = reader.approvals()
        # A server that counts its calls gives many threads the same ids: the one that waits is meant.
        waiting = [view for view in asked if view.is_waiting and view.record["call_id"] == text]
        if len(waiting) == 1:
            view = waiting[0]
        else:
            target = reader.resolve(text, kinds=("call",))
            found = next((view for view in asked if _key(view) == (target.thread_id, target.id)), None)
            if found is None or not found.is_waiting:
                return _earlier_answer(reader, target)
            view = found
    require_valid_answer(view.record, answer.kind)
    call = view.record
    call_id, attempt = call["call_id"], call.get("attempt", 1)
    digest = call.get("args_digest") or args_digest(call_id, call["tool_name"], attempt, call["arguments"])
    question = Question("approval", call_id, attempt, digest, call.get("reason", ""))
    if shown is not None and not question.accepts_answers_to(shown):
        raise QuestionChanged(call_id)
    async with await open_database(database) as opened:
        standing = await SqliteDecisions(opened).insert_if_asked(view.thread_id, question, answer)
    return _recorded(view, standing, accepted=standing == answer)


def _key(view: CallView) -> tuple[str, str]:
    return view.thread_id, view.record["call_id"]


def _recorded(view: CallView, answer: Answer | StandingAnswer, *, accepted: bool) -> RecordedAnswer:
    return RecordedAnswer(view.record["call_id"], view.thread_id, answer.kind, accepted, answer.by, answer.at)


def _earlier_answer(reader: Reader, target: Target) -> RecordedAnswer:
    """The answer to a call that no longer waits.

    Raises:
        AnswerRefused: nobody has answered.
    """
    view = reader.call(target.thread_id, target.id)
    earlier = reader.approval_answer(target.thread_id, target.id)
    if earlier is not None:
        return _recorded(view, earlier, accepted=False)
    status = view.record["status"]
    state, advice = f"its status is {status}", f"List pending approvals with `{own_command()} approvals list`."
    if status == "awaiting_approval" or view.record.get("abandoned"):
        state = "it is on an abandoned branch"
    elif status == "interrupted":
        advice = f"Decide what happens with it: `{own_command()} recover {view.thread_id}`."
    raise AnswerRefused(f"Call {target.id!r} is not waiting for approval; {state}. {advice}")


def format_next_step(thread_id: str, database: Path) -> str:
    """What happens after an answer, which runs nothing itself."""
    with read_database(database) as reader:
        owner = reader.top_thread(thread_id)
        thread = reader.thread(owner)
    if thread.checkpoint_id is None:  # A journal of tool calls, whose graph is elsewhere.
        return "The graph applies it when it runs next."
    holder = thread.holder
    if holder is None:
        if any(task.thread_id == owner and task.state == "started" for task in read_tasks(database)):
            return f"A worker continues the task. If none is running: {own_command()} worker"
        return f"Resume with: {own_command()} resume {owner}"
    return f"Process {holder.pid} has the thread open and continues now."


async def edit_approval(
    database: Path,
    text: str,
    arguments: Mapping[str, Any],
    *,
    by: str,
    shown: Question | None = None,
    clock: Clock | None = None,
) -> RecordedAnswer:
    """Approve a pending call with other arguments. The first answer wins. For `shown` see `record_answer`.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or it may not run with these arguments; then it stays open.
    """
    from graph_agent.toolbox import MCP_PREFIX  # noqa: PLC0415 - see above

    clock = clock or SystemClock()
    call = find_waiting_call(database, text)
    # A server's tool is known only where its server runs, so the answer is checked there when it is applied.
    if call.view is not None and not call.view.record["tool_name"].startswith(MCP_PREFIX):
        async with _toolbox_for(call, database, clock) as toolbox:
            plan = await toolbox.prepare(call.view.record["tool_name"], arguments, call.scope)
        if plan.verdict in ("unusable", "deny"):
            raise AnswerRefused(
                f"Call {call.call_id!r} is still pending; the edited arguments cannot be used: {plan.reason}"
            )
    return await record_answer(database, call.name, Answer("edit", by, clock.now(), arguments), shown=shown)


async def propose_rules(
    database: Path, text: str, effect: GrantEffect = "allow", *, clock: Clock | None = None
) -> Proposal | None:
    """The rules that always allowing, or denying, such calls would store; None if the call does not wait.

    Raises:
        UnknownId: no call has this id, or several have.
    """
    call = find_waiting_call(database, text)
    if call.view is None:
        return None
    async with _toolbox_for(call, database, clock or SystemClock()) as toolbox:
        return await toolbox.propose(
            call.view.record["tool_name"], call.view.record["arguments"], call.scope, effect
        )


async def answer_always(  # noqa: PLR0913 - the parts of one answer
    database: Path,
    text: str,
    always: tuple[GrantEffect, GrantScope, RuleChoice],
    reason: str = "",
    *,
    by: str,
    shown: Question | None = None,
    shown_rules: Sequence[str] | None = None,
    clock: Clock | None = None,
) -> tuple[RecordedAnswer, AlwaysRules, str]:
    """Approve a call, or reject it, and from now on allow, or deny, what the proposed rules cover.

    Args:
        always: what the rules do, where they apply, and which of the proposed ones they are.
        reason: with a rejection, for the model.
        shown: see `record_answer`.
        shown_rules: the rules that the person saw before; others are not stored.

    Returns the stored answer, the rules, and what they cover, as a sentence.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or no rule can be made of it, or not the one that was shown; then
            it stays open.
    """
    clock = clock or SystemClock()
    call = find_waiting_call(database, text)
    effect, scope, rule = always
    answer = Answer("approve" if effect == "allow" else "reject", by, clock.now(), reason=reason)
    if call.view is None:
        standing = await record_answer(database, call.name, answer, shown=shown)
        return standing, AlwaysRules(scope, (), effect=effect), ""
    record = call.view.record
    async with _toolbox_for(call, database, clock) as toolbox:
        proposal = await toolbox.propose(record["tool_name"], record["arguments"], call.scope, effect)
    chosen = proposal.choice(rule)
    if chosen is None:
        raise AnswerRefused(_explain_no_rule(call.call_id, proposal, rule, effect))
    if shown_rules is not None and tuple(shown_rules) != chosen.rules:
        raise AnswerRefused(
            f"Call {call.call_id!r} is still pending. The rule is a different one now: {', '.join(chosen.rules)}"
        )
    stored = AlwaysRules(scope, chosen.rules, proposal.folder, chosen.folders, chosen.prefixes, effect)
    granted = attach_grant(answer, stored, call.call_id, call.scope, str(call.workspace))
    return await record_answer(database, call.name, granted, shown=shown), stored, chosen.coverage


def _explain_no_rule(call_id: str, proposal: Proposal, rule: RuleChoice, effect: GrantEffect) -> str:
    other: RuleChoice = "prefix" if rule == "exact" else "exact"
    if (found := proposal.choice(other)) is not None:
        why = (
            "No part of this command may be allowed with any arguments." if rule == "prefix" else proposal.objection
        )
        return (
            f"Call {call_id!r} is still pending. {why} Its {other} rule, --rule {other}: {', '.join(found.rules)}"
        )
    done, once = ("allowed", "Approve") if effect == "allow" else ("denied", "Reject")
    return (
        f"Call {call_id!r} cannot be always {done} and is still pending. {proposal.objection} "
        f"{once} it once, without --always."
    )


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that an id names."""

    thread_id: str
    call_id: str
    view: CallView | None
    """None: it is not waiting for approval, or no longer."""
    workspace: Path
    roots: tuple[str, ...]
    """Folders in addition to the workspace that the thread may work in."""
    scope: Scope

    @property
    def name(self) -> str:
        """The id that names it even if other threads have a call of the same id."""
        return f"{self.thread_id}:{self.call_id}"


def find_waiting_call(database: Path, text: str) -> WaitingCall:
    """The call that an id, a part of one or THREAD:CALL names.

    Raises:
        UnknownId: no call has this id, or several have.
    """
    with read_database(database) as reader:
        waiting = {_key(view): view for view in reader.approvals() if view.is_waiting}
        exact = [key for key in waiting if key[1] == text]
        if len(exact) == 1:
            thread_id, call_id = exact[0]
        else:
            target = reader.resolve(text, kinds=("call",))
            thread_id, call_id = target.thread_id, target.id
        view = waiting.get((thread_id, call_id))
        thread, roots = reader.thread(thread_id), reader.roots(thread_id)
        values = reader.inspection(thread_id).state.values if view else {}
    scope = Scope(thread_id, thread.mode, str(values.get("cwd") or ""))
    return WaitingCall(thread_id, call_id, view, Path(thread.workspace).resolve(), roots, scope)


def pending_sub_agent_calls(database: Path, thread_id: str) -> list[CallView]:
    """The calls of a thread's sub-agents that wait for an approval, whether or not the sub-agents are open now."""
    with read_database(database) as reader:
        below = {thread.thread_id for thread in reader.family(thread_id)} - {thread_id}
        return [view for view in reader.approvals() if view.is_waiting and view.thread_id in below] if below else []


@asynccontextmanager
async def _toolbox_for(call: WaitingCall, database: Path, clock: Clock) -> "AsyncIterator[GraphToolbox]":
    """The tools where a call would run, under the rules and permissions of now; nothing is run with them."""
    from graph_agent.app.mcp_servers import SessionServers  # noqa: PLC0415 - see above
    from graph_agent.app.project_trust import settings_at  # noqa: PLC0415 - see above
    from graph_agent.app.toolset import (  # noqa: PLC0415 - see above
        ToolStorage,
        WorkFolders,
        full_registry,
        open_toolbox,
        roots_of,
    )

    settings = settings_at(call.workspace, {"database": database})
    async with await open_database(database) as opened:
        blobs = open_blobs(database)
        journal, states = SqliteJournal(opened, blobs, clock), SqliteFileStates(opened, clock)
        storage = ToolStorage(blobs, states, journal, SqliteGrants(opened), ThreadTable(opened, clock))
        roots = roots_of(call.workspace, call.roots, settings).usable
        registry, _ = await asyncio.to_thread(full_registry, call.workspace, settings)
        bus = EventBus()
        # None of the servers is started: their tools answer only in the process that runs them.
        servers = SessionServers(settings, registry, call.workspace, bus)
        yield await open_toolbox(WorkFolders(call.workspace, roots), settings, storage, bus, servers)


async def revoke_grant(database: Path, text: str, *, by: str, clock: Clock | None = None) -> Grant:
    """Revoke the grant with this id.

    Raises:
        UnknownId: there is no such grant; nothing is created or changed.
    """
    with read_database(database) as reader:
        standing = {str(grant.id): grant for grant in reader.grants()}
    named = standing.get(text.strip())
    if named is not None:
        async with await open_database(database) as opened:
            revoked = await SqliteGrants(opened).revoke(named.id, by, (clock or SystemClock()).now())
        if revoked is not None:
            return revoked
    choice = f"Saved permissions: {', '.join(standing)}." if standing else "There are no saved permissions."
    raise UnknownId(f"No saved permission has the id {text!r}. {choice} List them with `graph-agent policy list`.")
