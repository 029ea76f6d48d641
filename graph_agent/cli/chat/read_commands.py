"""The slash commands that read, shown by the views of the commands of the same name; `/rewind` and `/tasks`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graph_agent.app.reader import read_database
from graph_agent.cli.prompts.dialogs import format_pending, last_messages
from graph_agent.cli.prompts.menu import Menu, Row
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.views.calls import list_calls
from graph_agent.cli.views.format import format_cost_lines, format_todo
from graph_agent.cli.views.inspection import inspect_state, show_difference, show_history
from graph_agent.cli.views.memory import remove_note, show_memory
from graph_agent.cli.views.table import print_lines, within_chat
from graph_agent.cli.views.threads import list_threads, show_changes
from graph_agent.cli.views.time_travel import (
    REWIND_SCOPES,
    RewindPoint,
    find_rewind_points,
    print_rewind,
    rewind_menu,
)
from graph_agent.errors import AgentError, NothingYet, UnknownId, UsageError
from graph_agent.events import ServerChanged
from graph_agent.ports import RewindScope
from graph_agent.ports.background import BackgroundTask
from graph_agent.wording import format_age

if TYPE_CHECKING:
    from graph_agent.app.rewind import RewindRequest
    from graph_agent.inspect import ThreadSummary
    from graph_agent.session.session import Session


__all__ = ["ChatRewind", "ReadCommands", "choose_rewind", "parse_rewind", "rewind_from_chat", "show_tasks"]


@dataclass(frozen=True, slots=True)
class ReadCommands:
    """The read commands of one thread."""

    database: Path
    thread_id: str
    mode: str
    """It decides which tools are enabled."""
    servers: Mapping[str, ServerChanged] = field(default_factory=dict)
    """The MCP servers of the session, by name."""

    def show(self, name: str, argument: str) -> None:
        """Print the view of this name; to be called in a thread. Views load what only they need."""
        views: dict[str, Callable[[str], None]] = {
            "threads": lambda _: list_threads(self.database, as_json=False),
            "calls": self._calls,
            "history": lambda _: show_history(self.database, self.thread_id, None, as_json=False),
            "diff": self._diff,
            "graph": self._graph,
            "todo": self._todo,
            "memory": self._memory,
            "policy": self._policy,
            "tools": self._tools,
            "mcp": self._servers,
            "doctor": self._health,
            "cost": self._cost,
            "export": self._export,
            "inspect": self._inspect,
        }
        with within_chat():
            views[name](argument)

    def _calls(self, call: str) -> None:
        which = f"{self.thread_id}:{call}" if call else self.thread_id
        list_calls(self.database, which, status=None, tool=None, as_json=False)

    def _inspect(self, path: str) -> None:
        inspect_state(self.database, self.thread_id, None, path=path or None, as_json=False, full=False)

    def _diff(self, argument: str) -> None:
        match argument.split():
            case []:
                show_changes(self.database, self.thread_id, None, as_json=False)
            case [old]:
                show_difference(self.database, old, self.thread_id, None, as_json=False)
            case [old, new]:
                show_difference(self.database, old, new, None, as_json=False)
            case _:
                raise UsageError("/diff takes two checkpoints at most. List them with /history.")

    def _graph(self, _: str) -> None:
        from graph_agent.cli.views.inspection import show_graph

        show_graph(self.database, self.thread_id, None)

    def _servers(self, _: str) -> None:
        from graph_agent.cli.views.mcp import list_servers

        list_servers(as_json=False, live=self.servers)

    def _health(self, _: str) -> None:
        from graph_agent.app.doctor import run_checks
        from graph_agent.cli.views.doctor import format_check

        print_lines(line for check in run_checks(self.database, os.environ) for line in format_check(check))

    def _cost(self, _: str) -> None:
        try:
            with read_database(self.database) as reader:
                thread, state = reader.thread(self.thread_id), reader.inspection(self.thread_id).state
        except (NothingYet, UnknownId):
            print_lines(format_cost_lines(None, None))
        else:
            print_lines(format_cost_lines((state.values.get("turn") or {}).get("usage"), thread.usage))

    def _todo(self, _: str) -> None:
        try:
            with read_database(self.database) as reader:
                plan = reader.inspection(self.thread_id).state.values.get("todo") or []
        except (NothingYet, UnknownId):
            plan = []
        print_lines(format_todo(plan) or ["No todo list yet."])

    def _export(self, file: str) -> None:
        from graph_agent.cli.views.thread_files import export_thread

        if not file:
            print_lines(["Name a file, for example /export thread.html (.html and .md to read, .json to import)."])
            return
        export_thread(self.database, self.thread_id, None, None, str(Path(file).expanduser()))

    def _memory(self, argument: str) -> None:
        match argument.split():
            case []:
                show_memory(as_json=False)
            case ["undo"]:
                remove_note(threads=self._own_threads())
            case ["forget", number]:
                remove_note(number)
            case _:
                raise UsageError("Usage: /memory, /memory undo, or /memory forget NUMBER.")

    def _own_threads(self) -> list[str]:
        """This thread and those of its sub-agents."""
        try:
            with read_database(self.database) as reader:
                return [thread.thread_id for thread in reader.family(self.thread_id)]
        except (NothingYet, UnknownId):
            return []

    def _policy(self, argument: str) -> None:
        from graph_agent.cli.views.policy import list_policy, revoke_permission

        verb, _, named = argument.partition(" ")
        if verb == "revoke":
            revoke_permission(self.database, named, as_json=False)
        else:
            list_policy(self.database, as_json=False)

    def _tools(self, name: str) -> None:
        from graph_agent.cli.views.tools import list_tools, show_tool

        if name:
            show_tool(name, self.mode, as_json=False)
        else:
            list_tools(self.mode, as_json=False)


_SCOPES: dict[str, RewindScope] = {"--files-only": "files", "--chat-only": "chat"}
_OPTIONS = frozenset(("--undo", "--force", "--dry-run", *_SCOPES))
_MAX_NUMBER_CHARS = 3
"""Of the number of a message; a part of an id has more."""


def parse_rewind(arguments: str, thread_id: str) -> "RewindRequest":
    """The typed arguments as a request about this thread.

    Raises:
        UsageError: the arguments are not valid.
    """
    from graph_agent.app.rewind import RewindRequest

    words = arguments.split()
    options = [word for word in words if word.startswith("--")]
    checkpoints = [word for word in words if not word.startswith("--")]
    unknown = [option for option in options if option not in _OPTIONS]
    scopes = [_SCOPES[option] for option in options if option in _SCOPES]
    is_undo = "--undo" in options
    if unknown or len(scopes) > 1 or len(checkpoints) != (not is_undo):
        raise UsageError(
            "Usage: /rewind NUMBER|CHECKPOINT|--undo [--files-only|--chat-only] [--force] [--dry-run]. "
            "/rewind alone lists the messages, /history the checkpoints."
        )
    return RewindRequest(
        thread_id if is_undo else f"{thread_id}:{checkpoints[0]}",  # never a checkpoint of another thread
        scope=scopes[0] if scopes else "both",
        is_undo=is_undo,
        is_dry="--dry-run" in options,
        is_forced="--force" in options,
    )


@dataclass(frozen=True, slots=True)
class ChatRewind:
    """What `/rewind` is to do."""

    request: "RewindRequest | None"
    """None: only the conversation begins anew."""
    message: str = ""
    """What comes back onto the line."""
    begins_anew: bool = False
    """Whether the conversation continues in a new thread, because nothing was before the message."""


async def choose_rewind(database: Path, thread_id: str, arguments: str, terminal: Terminal) -> ChatRewind:
    """What the arguments of `/rewind` say: a message by its number, a checkpoint, or nothing: the person chooses.

    Raises:
        UsageError: the arguments are not valid, there is no such message, or the person leaves the menu.
    """
    numbers = [word for word in arguments.split() if word.isdecimal() and len(word) <= _MAX_NUMBER_CHARS]
    if arguments.strip() and len(numbers) != 1:
        return ChatRewind(parse_rewind(arguments, thread_id))
    points = await asyncio.to_thread(_read_points, database, thread_id)
    if not points:
        raise UsageError("There is no message to rewind to yet.")
    if numbers:
        point = next((one for one in points if str(one.number) == numbers[0].lstrip("0")), None)
        if point is None:
            raise UsageError(f"There is no message {numbers[0]} to rewind to. /rewind lists the messages.")
        arguments = arguments.replace(numbers[0], point.checkpoint_id)
    else:
        picked = await terminal.choose(rewind_menu(database, thread_id, points))
        if picked is None:
            raise UsageError("Nothing was changed.")
        point = next(one for one in points if one.checkpoint_id == picked.key)
        scope = REWIND_SCOPES[picked.variant]
        arguments = " ".join([picked.key, *(option for option, named in _SCOPES.items() if named == scope)])
    request = parse_rewind(arguments, thread_id)
    if request.scope == "files":
        return ChatRewind(request)
    if not point.is_first:
        return ChatRewind(request, point.text)
    return ChatRewind(None if request.scope == "chat" else replace(request, scope="files"), point.text, True)


def _read_points(database: Path, thread_id: str) -> list[RewindPoint]:
    """See `find_rewind_points`; none where the thread is not stored yet."""
    try:
        return find_rewind_points(database, thread_id)
    except (NothingYet, UnknownId):
        return []


async def rewind_from_chat(database: Path, order: "RewindRequest", confirm: Callable[[], Awaitable[bool]]) -> bool:
    """Show the plan of a rewind, ask, and rewind a thread that no session holds; whether it was done.

    Raises what `rewind` raises.
    """
    from graph_agent.app.rewind import format_survey, rewind

    done = await rewind(database, replace(order, is_dry=True), lambda _: False)
    may_run = not order.is_dry and (order.is_forced or not done.plan.conflicts)
    if may_run:
        print_lines(format_survey(done.plan))
        if await confirm():
            done = await rewind(database, order, lambda _: True)
    with suppress(typer.Exit), within_chat():
        print_rewind(done, is_dry=order.is_dry, as_json=False, was_shown=may_run)
    return done.is_done


_NO_TASKS = "Nothing runs in the background, and no other thread waits for an answer."
_TASK_LINES = 20


async def show_tasks(session: "Session", terminal: Terminal, database: Path, say: Callable[[str], None]) -> str:
    """Let the user view and stop tasks; returns the id of a thread to open, or None."""
    while True:
        tasks = await session.tasks()
        threads = await asyncio.to_thread(_waiting_threads, database, session.thread_id)
        if not tasks and not threads:
            say(_NO_TASKS)
            return ""
        picked = await terminal.choose(_tasks_menu(tasks, threads, database))
        if picked is None:
            return ""
        task = next((one for one in tasks if one.task_id == picked.key), None)
        if task is None and not picked.variant:
            return picked.key
        if task is None:
            say("This thread waits for your answer: press Enter to open it.")
        elif picked.variant:
            if not await session.stop_task(task.task_id):
                say(f"It has ended already: {task.title}")
        else:
            for line in await _task_lines(session, database, task):
                say(line)
            return ""


def _waiting_threads(database: Path, besides: str) -> "list[ThreadSummary]":
    try:
        with read_database(database) as reader:
            own = {one.thread_id for one in reader.family(besides)}
            return [
                one
                for one in reader.threads()
                if one.thread_id not in own and one.parent_call is None and format_pending(one)
            ]
    except NothingYet:
        return []


def _tasks_menu(tasks: Sequence[BackgroundTask], threads: "Sequence[ThreadSummary]", database: Path) -> Menu:
    rows = [Row(one.task_id, (one.kind,), one.title, one.state) for one in tasks]
    rows += [
        Row(
            one.thread_id,
            ("thread",),
            one.title or one.thread_id,
            f"{format_pending(one)}, {format_age(one.updated_at)}",
        )
        for one in threads
    ]
    of_sub_agents = {one.task_id: one.thread_id for one in tasks if one.thread_id}
    waiting = {one.thread_id: one.thread_id for one in threads}

    def preview(key: str) -> Sequence[str]:
        thread_id = {**of_sub_agents, **waiting}.get(key)
        return last_messages(database, thread_id) if thread_id else ()

    return Menu("Tasks", rows, actions={"s": "to stop"}, preview=preview)


async def _task_lines(session: "Session", database: Path, task: BackgroundTask) -> Sequence[str]:
    """The end of its output, or of the sub-agent's conversation."""
    if task.kind == "command":
        lines = (await session.task_output(task.task_id)).split("\n")[-_TASK_LINES:]
        return [f"{task.task_id} · {task.state} · $ {task.title}", *(f"  {line}" for line in lines if line)]
    try:
        said = await asyncio.to_thread(last_messages, database, task.thread_id)
    except AgentError as failure:
        return [str(failure)]
    return [f"{task.title} · {task.state} · thread {task.thread_id}", *(f"  {line}" for line in said)]
