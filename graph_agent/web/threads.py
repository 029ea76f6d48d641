"""The list of threads, and one thread: its transcript as it grows, messages to it, stop, mode and model."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph_agent.app.reader import read_database
from graph_agent.app.threads import cancel_running_task, choose_mode, choose_model, interrupt_holder, say
from graph_agent.config.paths import own_command
from graph_agent.config.settings import SELECTABLE_MODES
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import CallView, Reader, SearchHit, ThreadStatus, ThreadSummary
from graph_agent.inspect.transcript import TranscriptMessage, call_facts, format_tokens, gather_messages
from graph_agent.ports.usage import format_cost, usage_report
from graph_agent.web.live import Item, Region, short_id
from graph_agent.web.questions import question_items
from graph_agent.web.rendering import diff_lines, render
from graph_agent.web.site import Form, Outcome, Site, address, number_in

__all__ = ["thread_list_regions", "thread_regions", "thread_routes"]

_PER_PAGE = 40
_MAX_HITS = 30
_MAX_CALLS = 30
_MESSAGES = 60
"""The newest messages that are read for a page."""
_MAX_CARDS = 4
"""Questions on the page of a thread; the inbox has all of them."""
_MAX_BYTES = 14_000
"""Of the transcript on a page: with the frame and style sheet the first paint stays below 50 KB."""


def thread_routes(site: Site) -> list[Route]:
    """The pages and forms of threads."""

    def thread_list(request: Request) -> Response:
        regions, total = thread_list_regions(site, request)
        page, status = number_in(request, "page"), request.query_params.get("status", "")
        return site.page(
            request,
            "threads.html",
            title="Threads",
            regions=regions,
            hits=_search(site, request.query_params.get("q", "")),
            page=page,
            pages=max(-(-total // _PER_PAGE), 1),
            query=request.query_params.get("q", ""),
            status=status,
            statuses=get_args(ThreadStatus),
        )

    def thread(request: Request) -> Response:
        return _show_thread(site, request)

    async def send(form: Form) -> Outcome:
        thread_id = await say(site.database, form.require("id"), form.text("message"))
        is_continued = site.runner is not None and site.runner.wake(thread_id)
        return Outcome([_sent(site, thread_id, is_continued=is_continued)], f"{form.back()}#end")

    async def stop(form: Form) -> Outcome:
        return Outcome([await _stop(site, form.require("id"))], form.back())

    async def mode(form: Form) -> Outcome:
        chosen = form.choice("mode", *SELECTABLE_MODES)
        await choose_mode(site.database, form.require("id"), chosen)
        return Outcome([f"The thread is in mode {chosen} from its next turn on."], form.back())

    async def model(form: Form) -> Outcome:
        label = await choose_model(site.database, form.require("id"), form.require("model"))
        return Outcome([f"{label} answers from the next turn on."], form.back())

    return [
        Route("/threads", thread_list),
        Route("/thread", thread),
        Route("/say", site.action(send), methods=["POST"]),
        Route("/stop", site.action(stop), methods=["POST"]),
        Route("/mode", site.action(mode), methods=["POST"]),
        Route("/model", site.action(model), methods=["POST"]),
    ]


def thread_list_regions(site: Site, request: Request) -> tuple[list[Region], int]:
    """One page of the threads, newest first, and how many match the filter."""
    try:
        with read_database(site.database) as reader:
            threads = reader.threads()
    except NothingYet:
        threads = []
    status, words = request.query_params.get("status", ""), request.query_params.get("q", "").casefold().split()
    if status:
        threads = [one for one in threads if one.status == status]
    if words:
        threads = [one for one in threads if all(word in _searched(one) for word in words)]
    start = (number_in(request, "page") - 1) * _PER_PAGE
    items = [
        Item(
            short_id("t", one.thread_id),
            render("_thread_row.html", {"address": address, "thread": one, "cost": _cost(one)}),
            "row",
        )
        for one in threads[start : start + _PER_PAGE]
    ]
    return [Region("threads", items)], len(threads)


def _searched(thread: ThreadSummary) -> str:
    return f"{thread.title}\n{thread.thread_id}\n{thread.workspace}\n{thread.model}".casefold()


def _cost(thread: ThreadSummary) -> str:
    return format_cost(usage_report(thread.usage)) if thread.usage else ""


def _search(site: Site, text: str) -> list[SearchHit]:
    """Messages of any thread that hold the words."""
    if not text.strip():
        return []
    with suppress(NothingYet), read_database(site.database) as reader:
        return list(islice(reader.search(text), _MAX_HITS))
    return []


def _sent(site: Site, thread_id: str, *, is_continued: bool) -> str:
    """What happens with a message now."""
    if is_continued:
        return "Sent. This server continues the thread."
    with read_database(site.database) as reader:
        thread = reader.thread(reader.top_thread(thread_id))
    if thread.holder is None:
        return f"Queued. The next turn begins with it: {own_command()} resume {thread.thread_id}"
    if thread.status in ("idle", "waiting", "interrupted"):
        return f"Queued. Process {thread.holder.pid} has the thread open and sends it with its next turn."
    return f"Queued. Process {thread.holder.pid} sends it with its next model request."


async def _stop(site: Site, thread_id: str) -> str:
    """Stop the turn of a thread, here or in the process that holds it; returns what was done."""
    if site.runner is not None and await site.runner.stop(thread_id):
        return "The turn was stopped. What was pending does not run."
    with read_database(site.database) as reader:
        own = reader.top_thread(thread_id)
        holder = reader.thread(own).holder
    if task_id := await cancel_running_task(site.database, own, holder):
        return (
            "The worker stops the turn, and its task is cancelled. To continue it: "
            f"{own_command()} tasks retry {task_id[-8:]}"
        )
    if holder is not None and (holder.pid, holder.host) == (os.getpid(), socket.gethostname()):
        raise UsageError("Nothing of this thread runs now.")
    pid = interrupt_holder(site.database, thread_id)
    return f"Process {pid} was asked to stop its turn, as Ctrl-C does there."


def _show_thread(site: Site, request: Request) -> Response:
    regions, thread = thread_regions(site, request)
    return site.page(
        request,
        "thread.html",
        title=thread.title or f"Thread {thread.thread_id}",
        regions=regions,
        thread=thread,
        thread_id=thread.thread_id,
        modes=SELECTABLE_MODES,
        parent=thread.parent_thread if thread.parent_call else None,
        before=number_in(request, "before", 0),
    )


def thread_regions(site: Site, request: Request) -> tuple[list[Region], ThreadSummary]:
    """The facts, the transcript and the open questions of a thread.

    Raises:
        UnknownId: there is no such thread.
    """
    thread_id, before = request.query_params.get("id", ""), request.query_params.get("before", "")
    with read_database(site.database) as reader:
        family = reader.family(thread_id)
        thread = next((one for one in family if one.thread_id == thread_id), None) or reader.thread(thread_id)
        ids = {one.thread_id for one in family}
        calls = list(reader.iter_calls(thread_id, brief=True))
        questions = [view for view in reader.questions() if view.thread_id in ids] if not before else []
        items, earlier = _transcript(reader, thread_id, calls, number_in(request, "before", 0))
        shells = reader.shells(thread_id)
    values = {"address": address, "thread": thread, "cost": _cost(thread), "shells": shells, **site.values()}
    facts = Item("thread-facts", render("_thread_facts.html", values))
    link = Item(
        "earlier", render("_earlier.html", {"address": address, "thread_id": thread_id, "earlier": earlier})
    )
    here = address("/thread", id=thread_id)
    cards = question_items(site, questions[:_MAX_CARDS], {}, back=here, is_bulk=False)
    if len(questions) > _MAX_CARDS:
        cards.append(Item("more-questions", render("_more.html", {"count": len(questions) - _MAX_CARDS})))
    regions = [Region("facts", [facts]), Region("before", [link]), Region("transcript", items)]
    return [*regions, Region("questions", cards)], thread


def _transcript(reader: Reader, thread_id: str, calls: Sequence[CallView], before: int) -> tuple[list[Item], int]:
    """The newest messages, or those before a number, as many as fit; and how many come before them."""
    if not before:
        recent = reader.recent(thread_id, _MESSAGES)
        entries, earlier = recent.entries, recent.earlier
    else:
        everything = reader.transcript(thread_id)[:before]
        earlier = max(len(everything) - _MESSAGES, 0)
        entries = everything[earlier:]
    places = {
        f"{entry.branch}/{entry.seq}/{entry.message_id}": earlier + number for number, entry in enumerate(entries)
    }
    items: list[Item] = []
    size = 0
    first = earlier
    for message in reversed(list(gather_messages(entries, calls))):
        item = _message_item(thread_id, message)
        size += len(item.html.encode(errors="replace"))
        if items and size > _MAX_BYTES:
            break
        first = places.get(message.message_id, first)
        items.append(item)
    else:
        first = earlier
    return items[::-1], first


def _message_item(thread_id: str, message: TranscriptMessage) -> Item:
    tokens = format_tokens(message.tokens) if any(message.tokens.values()) else ""
    calls = [(call, list(call_facts(call)), diff_lines(call.diff)) for call in message.calls[:_MAX_CALLS]]
    values = {"address": address, "calls": calls, "message": message, "thread_id": thread_id, "tokens": tokens}
    role = message.role if message.role in ("user", "assistant") else "other"
    who = {"user": "You", "assistant": "Assistant"}.get(message.role, message.role)
    return Item(
        short_id("m", message.message_id), render("_message.html", values | {"who": who}), f"said {role}", who
    )
