"""One call whole: what it was given and what came of it. Lines that are safe to print; reads nothing."""

import json
from collections.abc import Iterator

from graph_agent.cli.escape import escape
from graph_agent.inspect import CallView

__all__ = ["whole_call"]


def whole_call(view: CallView) -> Iterator[str]:
    """The arguments and the result, nothing of them left out."""
    record = view.record
    for name, value in record["arguments"].items():
        yield from _field(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if record["error_msg"]:
        yield from _field("error", record["error_msg"])
    if record["result"]:
        yield from _field("result", record["result"])
    match record.get("metadata"):
        case {"diff": {"unified": str(diff)}} if diff:
            yield from _field("change", diff)
        case _:
            pass


def _field(name: str, text: str) -> Iterator[str]:
    first, *more = escape(text.removesuffix("\n"), multiline=True).split("\n")
    if not more:
        yield f"  {escape(name)}: {first}"
        return
    yield f"  {escape(name)}:"
    yield from (f"  │ {line}" for line in (first, *more))
