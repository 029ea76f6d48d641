import json
from typing import Any

import pytest

from graph_agent.model.openai.errors import ReplyError
from graph_agent.model.openai.stream import DONE, ReplyStream
from tests.graph_agent.model.shapes import OFFERED, Shape
from tests.graph_agent.model.shapes.endings import ARGUMENTS, ENDINGS, TEXTS
from tests.graph_agent.model.shapes.fragments import FRAGMENTS


def payloads(shape: Shape) -> list[str]:
    """The shape as it stands on the wire."""
    sent = [_payload(chunk, shape) for chunk in shape.chunks]
    if shape.finish and not shape.whole:
        sent.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": shape.finish}]}))
    return [*sent, DONE] if shape.done and not shape.whole else sent


def _payload(chunk: Any, shape: Shape) -> str:
    if isinstance(chunk, str):
        return chunk
    if "choices" in chunk or "error" in chunk:
        return json.dumps(chunk)
    part = "message" if shape.whole else "delta"
    return json.dumps(
        {"choices": [{"index": 0, part: chunk, "finish_reason": shape.finish if shape.whole else None}]}
    )


def came_to(shape: Shape) -> dict[str, Any]:
    """What the product makes of it, in the words of the table."""
    arrival = ReplyStream(OFFERED)
    try:
        shown = [delta for payload in payloads(shape) for delta in arrival.add(payload)]
        shown += list(arrival.end())
        message = arrival.message()
    except ReplyError as failure:
        return {"fails": type(failure).__name__}
    return {
        "calls": tuple((each["name"], each["args"]) for each in message.tool_calls),
        "text": message.text,
        "reasoning": "".join(delta.text for delta in shown if delta.kind == "reasoning"),
        "ids": tuple(each["id"] for each in message.tool_calls),
        "complaints": message.response_metadata.get("unusable_arguments", {}),
    }


@pytest.mark.parametrize("shape", [*FRAGMENTS, *ARGUMENTS, *ENDINGS, *TEXTS], ids=lambda shape: shape.name)
def test_every_shape_comes_to_its_calls_its_text_and_the_true_cause(shape: Shape) -> None:
    result = came_to(shape)

    if shape.fails:
        assert result == {"fails": shape.fails}
        return
    told = result.pop("complaints", {})
    ids = result["ids"] if shape.ids is None else shape.ids
    expected = {"calls": shape.calls, "text": shape.text, "reasoning": shape.reasoning, "ids": ids}
    assert result == expected
    assert {key: part in told.get(key, "") for key, part in shape.complaints.items()} == dict.fromkeys(told, True)
