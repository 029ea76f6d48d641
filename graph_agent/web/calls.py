"""The call log, one call in full, and what a thread changed in files."""

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph_agent.app.reader import read_database
from graph_agent.calls import outcome_of
from graph_agent.errors import NothingYet
from graph_agent.inspect import CALL_WORDS, CallView
from graph_agent.inspect.transcript import TranscriptCall
from graph_agent.web.live import Item, Region, short_id
from graph_agent.web.questions import question_items
from graph_agent.web.rendering import arguments_of, diff_lines, render
from graph_agent.web.site import Site, address, number_in

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["call_list_regions", "call_regions", "call_routes"]

_PER_PAGE = 40
_MAX_PAGE = 10_000
_MAX_LINES = 300
"""Of all diffs on the page of files."""


def call_routes(site: Site) -> list[Route]:
    """The pages of calls and of changed files."""

    def call_list(request: Request) -> Response:
        given = request.query_params
        regions, has_more = call_list_regions(site, request)
        return site.page(
            request,
            "calls.html",
            title="Calls",
            regions=regions,
            has_more=has_more,
            page=number_in(request, "page", most=_MAX_PAGE),
            status=given.get("status", ""),
            thread_id=given.get("thread", ""),
            tool=given.get("tool", ""),
            words=CALL_WORDS,
        )

    def call(request: Request) -> Response:
        given = request.query_params
        regions = call_regions(site, request)
        title = f"Call {given.get('call', '')}"
        return site.page(request, "call.html", title=title, regions=regions, thread_id=given.get("thread", ""))

    async def files(request: Request) -> Response:
        from graph_agent.app.file_changes import thread_changes

        thread_id = request.query_params.get("id", "")
        changes = await asyncio.to_thread(thread_changes, site.database, thread_id, None)
        shown, room = [], _MAX_LINES
        for file in changes.files:
            lines = diff_lines(file.diff)
            shown.append((file, lines, room))
            room -= min(len(lines), room)
        return site.page(
            request, "files.html", title="Changed files", thread_id=thread_id, changes=changes, shown=shown
        )

    return [Route("/calls", call_list), Route("/call", call), Route("/files", files)]


def call_list_regions(site: Site, request: Request) -> tuple[list[Region], bool]:
    """One page of the call log, newest thread first; whether more follow."""
    given = request.query_params
    status, tool, thread_id = given.get("status", ""), given.get("tool", ""), given.get("thread", "")
    start = (number_in(request, "page", most=_MAX_PAGE) - 1) * _PER_PAGE

    def matches(view: CallView) -> bool:
        record = view.record
        return status in ("", record["status"], outcome_of(record)) and tool in ("", record["tool_name"])

    views: Sequence[CallView] = ()
    try:
        with read_database(site.database) as reader:
            if thread_id:
                reader.thread(thread_id)
            found = (view for view in reader.iter_calls(thread_id or None, brief=True) if matches(view))
            views = list(islice(found, start, start + _PER_PAGE + 1))
    except NothingYet:
        pass
    items = [
        Item(
            short_id("c", view.thread_id, view.record["call_id"]),
            render("_call_row.html", {"address": address, "call": TranscriptCall(view.record, ""), "view": view}),
            "row",
        )
        for view in views[:_PER_PAGE]
    ]
    return [Region("calls", items)], len(views) > _PER_PAGE


def call_regions(site: Site, request: Request) -> list[Region]:
    """One call with its attempts, arguments, output and change; while it waits, with the forms that answer it.

    Raises:
        UnknownId: there is no such call.
    """
    thread_id, call_id = request.query_params.get("thread", ""), request.query_params.get("call", "")
    with read_database(site.database) as reader:
        view = reader.call(thread_id, call_id)
        asking = [
            one for one in reader.questions() if (one.thread_id, one.record["call_id"]) == (thread_id, call_id)
        ]
        workspaces = {thread_id: reader.thread(thread_id).workspace}
    record = view.record
    found = _findings(site, thread_id, call_id) if asking and record["status"] == "interrupted" else None
    is_full = request.query_params.get("full") == "yes"
    call = TranscriptCall(record, str(record.get("error_msg") or record.get("result") or ""))
    values = {
        "address": address,
        "call": call,
        "change": diff_lines(call.diff),
        "found": found,
        "lines": 2_000 if is_full else 60,
        "chars": 200_000 if is_full else 4_000,
        "more": "" if is_full else address("/call", thread=thread_id, call=call_id, full="yes"),
        "preview": str((record.get("preview") or {}).get("text") or ""),
        "texts": list(arguments_of(view))[: None if is_full else 8],
        "thread_id": thread_id,
        "view": view,
    }
    here = address("/call", thread=thread_id, call=call_id)
    cards = question_items(site, asking, workspaces, back=here, is_bulk=False)
    whole = Item("call-whole", render("_call.html", values))
    return [Region("questions", cards), Region("call", [whole])]


def _findings(site: Site, thread_id: str, call_id: str) -> object:
    """What can be found out about an interrupted call: output so far, processes, whether it took effect."""
    from graph_agent.app.recovery import interrupted_calls

    calls = asyncio.run(interrupted_calls(site.database, thread_id))
    return next(
        (one.found for one in calls if (one.view.thread_id, one.view.record["call_id"]) == (thread_id, call_id)),
        None,
    )
