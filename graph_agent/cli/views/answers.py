"""What came of answering a question from the command line."""

import asyncio
import os
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import typer

from graph_agent.app.approvals import Answered, answer_approval
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import resolve_database
from graph_agent.cli.views.table import format_time, print_json, print_lines
from graph_agent.inspect import Reader

__all__ = ["answer_call", "format_next_step", "print_answer"]


def answer_call(
    call: str, kind: Literal["approve", "answer", "reject"], reason: str, db: str | None, *, as_json: bool
) -> None:
    """Give an answer and tell which one stands; exit code 1 when it is somebody else's."""
    given = asyncio.run(
        answer_approval(resolve_database(db), call, kind, by=f"cli pid {os.getpid()}", reason=reason)
    )
    print_answer(given, db, as_json=as_json)


def print_answer(given: Answered, db: str | None, *, as_json: bool) -> None:
    """Tell which answer stands; exit code 1 when it is somebody else's."""
    if as_json:
        print_json(asdict(given))
    elif given.accepted:
        told = f"{given.kind}: {given.call_id} of thread {given.thread_id}"
        print_lines([escape(told), escape(format_next_step(given.thread_id, resolve_database(db)))])
    else:
        told = f"{given.call_id} was answered before: {given.kind} by {given.by}, {format_time(given.at)}"
        print_lines([escape(told)])
    if not given.accepted:
        raise typer.Exit(1)


def format_next_step(thread_id: str, database: Path) -> str:
    """What happens after an answer, which by itself runs nothing."""
    with Reader.open(database) as reader:
        owner = reader.owner(thread_id)
        holder = reader.thread(owner).holder
    if holder is None:
        return f"go on with: graph-agent resume {owner}"
    return f"process {holder.pid} has the thread open and goes on by itself"
