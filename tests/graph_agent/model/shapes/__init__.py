"""Replies as servers really send them, and what each comes to. Tables only: every shape has a name and a reason."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["OFFERED", "Shape", "call", "piece"]

OFFERED = ("read_file", "bash", "ls")
"""Names of the tools that every request of these tables offers."""


@dataclass(frozen=True)
class Shape:
    """One reply and what is to become of it."""

    name: str
    chunks: tuple[Any, ...]
    """Each a `choices[0].delta`; with `choices` or `error` in it a chunk as it stands; a text is a raw payload."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Name and arguments of the calls that are run."""
    text: str = ""
    finish: str | None = "tool_calls"
    """Reason in a last chunk of its own; None sends none."""
    ids: tuple[str | None, ...] | None = None
    """Ids of the calls; None compares none."""
    complaints: dict[str, str] = field(default_factory=dict)
    """What the model is told of unusable arguments, by position: a part of the sentence."""
    reasoning: str = ""
    done: bool = True
    """Whether [DONE] ends the stream."""
    fails: str = ""
    """Name of the exception where nothing of the reply is taken."""
    whole: bool = False
    """The chunks are `message` objects of a reply that is not streamed."""


def piece(index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> Any:
    """A delta with one fragment of a call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": call_id, "type": "function", "function": function, **more}
    return {"tool_calls": [{key: value for key, value in whole.items() if value is not None}]}


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """A call that is run."""
    return name, arguments
