from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph_agent.calls import FULL_RESULTS, SHORTENED, ToolCallInfo
from graph_agent.graph.tool_routing import shown_before, shown_by

_SHOWN = {"path": "/w/a", "sha256": "1", "offset": 1}


def _call(**more: Any) -> ToolCallInfo:
    call: Any = {
        "call_id": "c2",
        "status": "success",
        "kind": "readonly",
        "paths": ["/w/a"],
        "arguments": {},
        **more,
    }
    return call  # type: ignore[no-any-return]  # what else a record has plays no part


def _talk(shown: object = _SHOWN, *, result: dict[str, Any] | None = None, asks: Any = None) -> list[AnyMessage]:
    noted = {} if shown is None else {"shown": shown}
    return [
        ToolMessage("text", tool_call_id="c1", additional_kwargs=noted, response_metadata=result or {}),
        AIMessage("", response_metadata=asks or {}),
    ]


@pytest.mark.parametrize(
    ("call", "noted"),
    [
        (_call(metadata={"shown": _SHOWN}), {"shown": _SHOWN}),
        (_call(metadata={"shown": _SHOWN, "truncated": True}), {}),
        (_call(metadata={"shown": _SHOWN}, status="error"), {}),
        (_call(metadata={"shown": "a tool's own"}), {}),
        (_call(), {}),
    ],
)
def test_a_message_notes_what_a_whole_result_shows(call: ToolCallInfo, noted: dict[str, Any]) -> None:
    assert shown_by(call) == noted


@pytest.mark.parametrize(
    ("talk", "call", "shown"),
    [
        (_talk(), _call(), [_SHOWN]),
        (_talk(), _call(paths=["/w/b"]), []),
        (_talk(), _call(kind="execute"), []),
        (_talk(), _call(kind="write", arguments={"file_path": "a", "content": "x"}), [_SHOWN]),
        (_talk(result={SHORTENED: True}, asks={FULL_RESULTS: True}), _call(kind="write"), [_SHOWN]),
        (_talk(result={SHORTENED: True}), _call(), []),
        (_talk(asks={FULL_RESULTS: True}), _call(), []),
        (_talk("brought from elsewhere"), _call(), []),
        (_talk(None), _call(), []),
        (_talk() + _talk(), _call(arguments={"path": "a", "offset": 1, "colour": "red"}), [_SHOWN]),
        (_talk(), _call(arguments={"path": "a", "offset": 2}), []),
    ],
)
def test_a_read_knows_what_stands_whole_before_the_model_and_a_write_all_that_it_was_shown(
    talk: list[AnyMessage], call: ToolCallInfo, shown: list[dict[str, Any]]
) -> None:
    assert shown_before(talk, call) == shown
