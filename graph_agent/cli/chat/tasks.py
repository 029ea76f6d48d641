"""`/tasks`: what runs beside the conversation, and which other threads wait for an answer."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.reader import read_database
from graph_agent.cli.prompts.dialogs import last_words, pending_words
from graph_agent.cli.prompts.menu import Menu, Row
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.views.format import format_age
from graph_agent.errors import AgentError, NothingYet
from graph_agent.ports.background import BackgroundTask

if TYPE_CHECKING:
    from graph_agent.inspect import ThreadSummary
    from graph_agent.session.session import Session

__all__ = ["show_tasks"]

_NONE = "Nothing runs in the background, and no other thread waits for an answer."
_OUTPUT_LINES = 20


async def show_tasks(session: "Session", terminal: Terminal, database: Path, say: Callable[[str], None]) -> str:
    """Let the person look at tasks and stop them; returns the id of a thread that they want to see, or nothing."""
    while True:
        tasks = await session.tasks()
        threads = await asyncio.to_thread(_waiting_threads, database, session.thread_id)
        if not tasks and not threads:
            say(_NONE)
            return ""
        picked = await terminal.choose(_menu(tasks, threads, database))
        if picked is None:
            return ""
        task = next((one for one in tasks if one.task_id == picked.key), None)
        if task is None and not picked.variant:
            return picked.key
        if task is None:
            say("A question is answered, not stopped: Enter shows its thread.")
        elif picked.variant:
            if not await session.stop_task(task.task_id):
                say(f"It has ended already: {task.title}")
        else:
            for line in await _output(session, database, task):
                say(line)
            return ""


def _waiting_threads(database: Path, besides: str) -> "list[ThreadSummary]":
    try:
        with read_database(database) as reader:
            own = {one.thread_id for one in reader.family(besides)}
            return [
                one
                for one in reader.threads()
                if one.thread_id not in own and one.parent_call is None and pending_words(one)
            ]
    except NothingYet:
        return []


def _menu(tasks: Sequence[BackgroundTask], threads: "Sequence[ThreadSummary]", database: Path) -> Menu:
    rows = [Row(one.task_id, (one.kind,), one.title, one.state) for one in tasks]
    rows += [
        Row(
            one.thread_id,
            ("thread",),
            one.title or one.thread_id,
            f"{pending_words(one)}, {format_age(one.updated_at)}",
        )
        for one in threads
    ]
    of_sub_agents = {one.task_id: one.thread_id for one in tasks if one.thread_id}
    waiting = {one.thread_id: one.thread_id for one in threads}

    def preview(key: str) -> Sequence[str]:
        thread_id = {**of_sub_agents, **waiting}.get(key)
        return last_words(database, thread_id) if thread_id else ()

    return Menu("Tasks", rows, actions={"s": "to stop"}, preview=preview)


async def _output(session: "Session", database: Path, task: BackgroundTask) -> Sequence[str]:
    """What a person wants to see of it: the end of its output, or of the sub-agent's conversation."""
    if task.kind == "command":
        lines = (await session.task_output(task.task_id)).split("\n")[-_OUTPUT_LINES:]
        return [f"{task.task_id} · {task.state} · $ {task.title}", *(f"  {line}" for line in lines if line)]
    try:
        said = await asyncio.to_thread(last_words, database, task.thread_id)
    except AgentError as failure:
        return [str(failure)]
    return [f"{task.title} · {task.state} · thread {task.thread_id}", *(f"  {line}" for line in said)]
