"""`graph`: the state machine as a drawing, with the place and the way of one thread in it where one is named."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self, assert_never, get_args

from graph_agent.app.graph_outline import EDGES, END, START
from graph_agent.cli.draw.chart import Chart, Walked, chart_of
from graph_agent.cli.draw.layout import lay_out
from graph_agent.cli.draw.mermaid import draw_mermaid
from graph_agent.cli.draw.png import draw_png
from graph_agent.cli.draw.svg import draw_svg
from graph_agent.cli.draw.text import draw_text
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import open_reader
from graph_agent.cli.views.table import (
    colorize,
    format_fields,
    line_width,
    print_json,
    print_lines,
    supports_unicode,
)
from graph_agent.errors import UnknownId, UsageError
from graph_agent.inspect import Inspection, Visits

__all__ = ["GraphOutput", "graph_picture", "show_graph", "whole_graph"]

Form = Literal["terminal", "mermaid", "svg", "png"]

_BY_SUFFIX: dict[str, Form] = {".mmd": "mermaid", ".mermaid": "mermaid", ".svg": "svg", ".png": "png"}
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """How it is drawn, and where to."""

    form: Form
    output: Path | None = None
    """None: stdout."""
    is_ascii: bool = False
    as_json: bool = False

    @classmethod
    def of(cls, form: str | None, output: Path | None, *, is_ascii: bool, as_json: bool) -> Self:
        """The order of a command line.

        Raises:
            UsageError: there is no such form, or options exclude each other.
        """
        if as_json and (form or output):
            raise UsageError("--json prints the graph as data; leave --format and --output out with it.")
        if form is not None and form not in get_args(Form):
            raise UsageError(f"--format {form!r} is unknown; choose one of {', '.join(get_args(Form))}.")
        by_name = _BY_SUFFIX.get(output.suffix.lower(), "terminal") if output else "terminal"
        chosen = next((one for one in get_args(Form) if one == form), by_name)
        if chosen == "png" and output is None and sys.stdout.isatty():
            raise UsageError("a PNG picture cannot be shown in a terminal; write it to a file with --output FILE.")
        return cls(chosen, output, is_ascii, as_json)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a thread stands, and how it came there."""

    found: Inspection
    visits: Visits
    is_ours: bool
    """Whether the graph is this program's; of another, only what was seen is known."""

    @property
    def live(self) -> tuple[str, ...]:
        nodes = dict.fromkeys(START if node == "__start__" else node for node in self.found.state.next)
        return tuple(nodes) or (END,)


def whole_graph() -> Chart:
    """The graph without any thread in it."""
    return chart_of(((edge.source, edge.outcome, edge.target) for edge in EDGES), (START, END))


def show_graph(database: Path | None, text: str, workspace: str | None, drawing: GraphOutput) -> None:
    """Draw the graph, and the thread that the text means in it where a database is given."""
    place = None if database is None else _place(database, text, workspace)
    chart = whole_graph() if place is None else _chart(place)
    if drawing.as_json:
        print_json(_json(chart, place))
    elif drawing.output is not None:
        _write(drawing.output, _picture(chart, place, drawing))
    elif drawing.form == "png":
        sys.stdout.buffer.write(_picture(chart, place, drawing))
    elif drawing.form == "terminal":
        print_lines(_lines(chart, place, drawing, line_width() or _WIDTH, lambda live: colorize(live, "running")))
    else:
        print_lines(_picture(chart, place, drawing).decode().splitlines())


def graph_picture(database: Path, thread_id: str) -> str:
    """The graph with one thread in it as an SVG picture, for a page; without it where it has no checkpoint yet."""
    try:
        place = _place(database, thread_id, None)
    except UnknownId:
        return draw_svg(lay_out(whole_graph()), _title(None))
    return draw_svg(lay_out(_chart(place)), _title(place))


def _place(database: Path, text: str, workspace: str | None) -> _Place:
    with open_reader(database) as reader:
        target = reader.resolve(text, workspace)
        found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
        visits = reader.visits(found.state.thread_id, found.state.checkpoint_id)
        is_ours = not reader.is_foreign
    return _Place(found, visits, is_ours)


def _chart(place: _Place) -> Chart:
    walked = Walked(place.visits.nodes, place.visits.edges, place.live)
    ways = [(edge.source, edge.outcome, edge.target) for edge in EDGES] if place.is_ours else []
    return chart_of(ways, (START, END), walked)


def _picture(chart: Chart, place: _Place | None, drawing: GraphOutput) -> bytes:
    match drawing.form:
        case "terminal":
            lines = _lines(chart, place, drawing, _WIDTH, str)
        case "mermaid":
            lines = draw_mermaid(chart)
        case "svg":
            lines = [draw_svg(lay_out(chart), _title(place)).rstrip("\n")]
        case "png":
            return draw_png(lay_out(chart))
        case _:
            assert_never(drawing.form)
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(
    chart: Chart, place: _Place | None, drawing: GraphOutput, width: int, paint: Callable[[str], str]
) -> list[str]:
    is_ascii = drawing.is_ascii or (drawing.output is None and not supports_unicode())
    lines = draw_text(lay_out(chart, width), is_ascii=is_ascii, paint=paint)
    return lines if place is None else [*lines, "", *_told(place)]


def _told(place: _Place) -> list[str]:
    state, since = place.found.state, place.visits.since
    return list(
        format_fields(
            {
                "thread": state.thread_id,
                "checkpoint": f"{state.checkpoint_id}{'' if state.is_head else ' (not the newest)'}",
                "status": place.found.status,
                "next": ", ".join(dict.fromkeys(state.next)) or "nothing",
                "counted": f"from checkpoint {since} on; older ones were pruned" if since else "",
            }
        )
    )


def _title(place: _Place | None) -> str:
    if place is None:
        return "The state machine of graph-agent"
    return escape(f"Thread {place.found.state.thread_id} at {', '.join(place.live)}")


def _json(chart: Chart, place: _Place | None) -> dict[str, Any]:
    state = place.found.state if place else None
    return {
        "thread_id": state.thread_id if state else None,
        "checkpoint_id": state.checkpoint_id if state else None,
        "status": place.found.status if place else None,
        "next": list(state.next) if state else [],
        "since": place.visits.since if place else None,
        "nodes": [asdict(node) for node in chart.nodes],
        "edges": [asdict(edge) for edge in chart.edges],
    }


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"--output {str(path)!r} cannot be written: {error.strerror}.") from error
    print_lines([f"wrote {escape(str(path))}"])
