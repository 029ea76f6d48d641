"""The state of a thread at any checkpoint, the difference between two, and time travel: fork and rewind."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph_agent.app.reader import build_graph, read_database
from graph_agent.app.threads import fork
from graph_agent.config.paths import own_command
from graph_agent.errors import UnknownId
from graph_agent.inspect import HistoryEntry, Inspection, Reader, diff_values, is_message, role_of
from graph_agent.ports.stored_text import plain_text
from graph_agent.web.drawing import draw
from graph_agent.web.live import Item, Region
from graph_agent.web.rendering import render
from graph_agent.web.site import Form, Outcome, Site, address, number_in

if TYPE_CHECKING:
    from graph_agent.app.rewind import RewindRequest

__all__ = ["state_regions", "state_routes"]

_CHECKPOINTS = 30
_MAX_CHECKPOINTS = 5_000
_MAX_VALUE = 1_200
"""Characters of a channel on the page; all of it has a page of its own."""
_MAX_CHANGES = 200
_MAX_WHOLE = 400_000
_SOURCES = {"input": "user message", "fork": "fork", "update": "update"}
"""What made a checkpoint that no node made."""


def state_routes(site: Site) -> list[Route]:
    """The pages and forms of the state."""

    def state(request: Request) -> Response:
        given = request.query_params
        regions = state_regions(site, request)
        return site.page(
            request,
            "state.html",
            title="State",
            regions=regions,
            thread_id=given.get("id", ""),
            checkpoint=given.get("checkpoint", ""),
        )

    def value(request: Request) -> Response:
        return _show_value(site, request)

    def difference(request: Request) -> Response:
        return _show_difference(site, request)

    async def show_survey(request: Request) -> Response:
        given = request.query_params
        return await _show_survey(site, request, given.get("checkpoint", ""), _scope(given.get("scope", "")))

    async def make_fork(form: Form) -> Outcome:
        made = await fork(site.database, f"{form.require('id')}:{form.require('checkpoint')}")
        calls = f" {made.open_calls} open calls are asked about again." if made.open_calls else ""
        line = f"Forked {made.parent_thread} as {made.thread_id}.{calls} {own_command()} resume {made.thread_id}"
        return Outcome([line], address("/thread", id=made.thread_id))

    async def rewind_thread(form: Form) -> Outcome:
        return await _rewind(site, form)

    return [
        Route("/state", state),
        Route("/value", value),
        Route("/diff", difference),
        Route("/rewind", show_survey, methods=["GET"]),
        Route("/rewind", site.action(rewind_thread), methods=["POST"]),
        Route("/fork", site.action(make_fork), methods=["POST"]),
    ]


def _inspect(reader: Reader, request: Request) -> Inspection:
    return reader.inspection(request.query_params.get("id", ""), request.query_params.get("checkpoint") or None)


def state_regions(site: Site, request: Request) -> list[Region]:
    """Picture, facts, values and checkpoints.

    Raises:
        UnknownId: there is no such thread or checkpoint, or the thread has none yet.
    """
    thread_id = request.query_params.get("id", "")
    newest = number_in(request, "last", _CHECKPOINTS, _MAX_CHECKPOINTS)
    with read_database(site.database) as reader:
        found = _inspect(reader, request)
        visits = reader.visits(thread_id, found.state.checkpoint_id)
        graph = build_graph(found, visits, is_foreign=reader.is_foreign)
        history = reader.history(thread_id, newest)
        total = reader.count_checkpoints(thread_id)
    shared = {"address": address, "found": found, "state": found.state, "thread_id": thread_id}
    picture = Item("graph", render("_graph.html", {"drawing": draw(graph), "graph": graph}))
    facts = Item("state-facts", render("_state_facts.html", shared | {"dump": _dump}))
    values = [(name, _dump(value)) for name, value in found.state.values.items()]
    channels = Item("channels", render("_channels.html", shared | {"values": values, "most": _MAX_VALUE}))
    timeline = {"describe": _describe, "history": history, "next": min(total, newest * 3), "total": total}
    checkpoints = Item("timeline", render("_timeline.html", site.values(**shared, **timeline)))
    return [
        Region("picture", [picture]),
        Region("facts", [facts]),
        Region("values", [channels]),
        Region("checkpoints", [checkpoints]),
    ]


def _dump(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _describe(entry: HistoryEntry) -> str:
    """What made a checkpoint."""
    return entry.node or _SOURCES.get(entry.source, "start")


def _show_value(site: Site, request: Request) -> Response:
    """One channel in full."""
    name = request.query_params.get("channel", "")
    with read_database(site.database) as reader:
        found = _inspect(reader, request)
    if name not in found.state.values:
        raise UnknownId(f"The state has no channel {name!r}. It has {', '.join(found.state.values)}.")
    return site.page(
        request,
        "value.html",
        title=name,
        thread_id=found.state.thread_id,
        text=_dump(found.state.values[name]),
        most=_MAX_WHOLE,
    )


def _show_difference(site: Site, request: Request) -> Response:
    """What leads from one checkpoint to the other, which may be another thread's."""
    given = request.query_params
    thread_id = given.get("id", "")
    with read_database(site.database) as reader:
        reader.thread(thread_id)
        before, after = (
            dict(reader.inspection(thread_id, given.get(side) or None).state.values) for side in ("a", "b")
        )
    changes = diff_values(before, after)
    shown = [(change, _side(change.old), _side(change.new)) for change in changes[:_MAX_CHANGES]]
    return site.page(
        request,
        "diff.html",
        title="Difference",
        thread_id=thread_id,
        changes=shown,
        more=max(len(changes) - _MAX_CHANGES, 0),
        sides=(given.get("a", ""), given.get("b", "")),
    )


def _side(value: Any) -> str:
    """One side of a change; of a message its role and text."""
    if is_message(value):
        calls = [
            f"→ {call.get('name')} {json.dumps(call.get('args'), ensure_ascii=False)}"
            for call in value.get("tool_calls") or ()
        ]
        return "\n".join(filter(None, (f"{role_of(value)}: {plain_text(value.get('content'))}", *calls)))
    return _dump(value)


def _scope(text: str) -> Any:
    return text if text in ("both", "chat", "files") else "both"


def _request(checkpoint: str, scope: Any, *, is_dry: bool, is_forced: bool = False) -> "RewindRequest":
    """Loads the modules of a rewind, so it is called in a thread that may wait for that."""
    from graph_agent.app.rewind import RewindRequest

    return RewindRequest(checkpoint, None, scope, is_dry=is_dry, is_forced=is_forced)


async def _show_survey(site: Site, request: Request, checkpoint: str, scope: Any) -> Response:
    """What a rewind would change, before it is done."""
    thread_id = request.query_params.get("id", "")
    order = await asyncio.to_thread(_request, f"{thread_id}:{checkpoint}", scope, is_dry=True)
    from graph_agent.app.rewind import format_survey, rewind

    done = await rewind(site.database, order, lambda _: False)
    lines = list(format_survey(done.plan))
    return site.page(
        request,
        "rewind.html",
        title="Rewind",
        thread_id=thread_id,
        checkpoint=checkpoint,
        scope=scope,
        lines=lines,
        digest=_digest(lines),
        conflicts=done.plan.conflicts,
    )


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode(errors="replace")).hexdigest()[:16]


async def _rewind(site: Site, form: Form) -> Outcome:
    """Rewind, if that changes exactly what the page showed."""
    thread_id, checkpoint = form.require("id"), form.require("checkpoint")
    scope, shown = form.choice("scope", "both", "chat", "files"), form.text("digest")
    order = await asyncio.to_thread(
        _request, f"{thread_id}:{checkpoint}", scope, is_dry=False, is_forced=form.text("force") == "yes"
    )
    from graph_agent.app.rewind import format_survey, rewind

    done = await rewind(site.database, order, lambda plan: _digest(list(format_survey(plan))) == shown)
    again = address("/rewind", id=thread_id, checkpoint=checkpoint, scope=scope)
    if not done.is_done:
        why = "there is a conflict" if done.plan.conflicts else "meanwhile the thread or its files have changed"
        return Outcome([f"Nothing was changed: {why}."], again)
    undo = f"Undo it with: {own_command()} rewind --undo {thread_id}"
    lines = [
        f"Rewound. The thread is at checkpoint {done.head}.",
        *(f"Not changed: {one}" for one in done.left),
        undo,
    ]
    return Outcome(lines, address("/state", id=thread_id))
