"""What results that the model still has before it show: a call that would bring the same again can say so instead.

It is read from the live window itself, so that what was compacted, shortened or rewound away counts no more.
"""

from typing import TYPE_CHECKING, Any

from graph_agent.calls import SHORTENED, WANTS_WHOLE, ToolCallInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage

__all__ = ["shown_before", "shown_by"]

_SHOWN, _PATH = "shown", "path"


def shown_by(call: ToolCallInfo) -> dict[str, Any]:
    """What the message with a call's result notes of it; nothing where the model got a part of the output only."""
    metadata = call.get("metadata", {})
    shown = metadata.get(_SHOWN)
    is_whole = call["status"] == "success" and not metadata.get("truncated")
    return {_SHOWN: shown} if is_whole and isinstance(shown, dict) else {}


def shown_before(messages: "Sequence[AnyMessage]", call: ToolCallInfo) -> list[dict[str, Any]]:
    """What results before this call show of the paths it names, each once; nothing for a model that looks not back.

    Where a call says of what it reads another part than a result showed, that result is left out: with the task all
    this is stored, and a file may be read in hundreds of parts.
    """
    paths = call.get("paths", ())
    part = {key: value for key, value in call["arguments"].items() if key != _PATH}
    if call.get("kind") != "readonly" or not paths or messages[-1].response_metadata.get(WANTS_WHOLE):
        return []
    noted = [
        message.additional_kwargs[_SHOWN]
        for message in messages
        if _SHOWN in message.additional_kwargs and not message.response_metadata.get(SHORTENED)
    ]
    kept: list[dict[str, Any]] = []
    for shown in noted:
        # A conversation may have been brought from elsewhere: then anything can stand there.
        is_of_it = isinstance(shown, dict) and shown.get(_PATH) in paths
        if is_of_it and shown not in kept and all(shown.get(key, value) == value for key, value in part.items()):
            kept.append(shown)
    return kept
