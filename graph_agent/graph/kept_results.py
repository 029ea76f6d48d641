"""What results that the model still has before it show: a call that would bring the same again can say so instead.

It is read from the live window itself, so that what was compacted, shortened or rewound away counts no more.
"""

from typing import TYPE_CHECKING, Any

from graph_agent.calls import SHORTENED, WANTS_WHOLE, ToolCallInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage

__all__ = ["shown_before", "shown_by"]

_SHOWN = "shown"


def shown_by(call: ToolCallInfo) -> dict[str, Any]:
    """What the message with a call's result notes of it; nothing where the model got a part of the output only."""
    metadata = call.get("metadata", {})
    shown = metadata.get(_SHOWN)
    is_whole = call["status"] == "success" and not metadata.get("truncated")
    return {_SHOWN: shown} if is_whole and isinstance(shown, dict) else {}


def shown_before(messages: "Sequence[AnyMessage]", call: ToolCallInfo) -> list[dict[str, Any]]:
    """What results before this call show of the paths it names; nothing for a model that does not look back."""
    paths = call.get("paths", ())
    if call.get("kind") != "readonly" or not paths or messages[-1].response_metadata.get(WANTS_WHOLE):
        return []
    noted = [
        message.additional_kwargs[_SHOWN]
        for message in messages
        if _SHOWN in message.additional_kwargs and not message.response_metadata.get(SHORTENED)
    ]
    # A conversation may have been brought from elsewhere: then anything can stand there.
    return [shown for shown in noted if isinstance(shown, dict) and shown.get("path") in paths]
