import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.openai.errors import BrokenReply, NoMessage
from graph_agent.model.openai.stream import DONE, ReplyStream
from tests.graph_agent.model.reply_shapes import OFFERED

pytestmark = pytest.mark.slow
EXAMPLES = settings(max_examples=150, deadline=None)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_VALUES = st.one_of(st.integers(-9, 9), st.booleans(), st.none(), _TEXT, st.lists(_TEXT, max_size=2))
CALLS = st.lists(st.tuples(st.sampled_from(OFFERED), st.dictionaries(_TEXT, _VALUES, max_size=3)), max_size=4)
STYLES = st.sampled_from(["documented", "no index", "index repeated", "ids in each", "counted from one"])
Call = tuple[str, dict[str, Any]]


def deltas(calls: list[Call], style: str, draw: st.DataObject) -> list[dict[str, Any]]:
    """The calls as one of the servers sends them, each cut at random places."""
    sent: list[dict[str, Any]] = []
    for number, (name, arguments) in enumerate(calls):
        head = {"id": f"c{number}", "type": "function"} | _index(number, style)
        first, *rest = pieces(json.dumps(arguments, ensure_ascii=False), draw)
        sent.append({**head, "function": {"name": name, "arguments": first}})
        again = head if style == "ids in each" else _index(number, style)
        sent += [{**again, "function": {"arguments": piece}} for piece in rest]
    return sent


def _index(number: int, style: str) -> dict[str, Any]:
    match style:
        case "no index":
            return {}
        case "index repeated":
            return {"index": 0}
        case "counted from one":
            return {"index": number + 1}
        case _:
            return {"index": number}


def pieces(text: str, draw: st.DataObject) -> list[str]:
    """The text cut at up to three places."""
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def chunks(fragments: list[dict[str, Any]], draw: st.DataObject) -> list[str]:
    """Chunks with one or more fragments each."""
    sent: list[list[dict[str, Any]]] = []
    for fragment in fragments:
        is_merged: bool = draw.draw(st.booleans())
        if sent and is_merged:
            sent[-1].append(fragment)
        else:
            sent.append([fragment])
    return [_chunk({"tool_calls": together}) for together in sent]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def arrived(payloads: list[str]) -> tuple[list[Call], dict[str, str], str]:
    """Runnable calls with `{}` where unusable, the complaints, and the text."""
    arrival = ReplyStream(OFFERED)
    for payload in payloads:
        list(arrival.add(payload))
    list(arrival.end())
    message = arrival.message()
    told = message.response_metadata.get("unusable_arguments", {})
    return [(each["name"], each["args"]) for each in message.tool_calls], told, message.text


@EXAMPLES
@given(CALLS, STYLES, _TEXT, st.data())
def test_a_valid_reply_cut_and_merged_at_random_loses_no_call_and_changes_none(
    calls: list[Call], style: str, text: str, draw: st.DataObject
) -> None:
    said = f"x{text}"
    texts = [_chunk({"content": piece}) for piece in pieces(said, draw)]

    result = arrived([*texts, *chunks(deltas(calls, style, draw), draw), _chunk({}, "stop"), DONE])

    assert result == (calls, {}, said)


@EXAMPLES
@given(CALLS.filter(bool), st.data())
def test_interleaved_calls_are_separated_by_index_or_id(calls: list[Call], draw: st.DataObject) -> None:
    waiting = [deltas([call], "documented", draw) for call in calls]
    for number, own in enumerate(waiting):
        for fragment in own:
            fragment |= {"index": number, **({"id": f"c{number}"} if "id" in fragment else {})}
    firsts = [own.pop(0) for own in waiting]
    sent = list(firsts)
    while left := [own for own in waiting if own]:
        sent.append(draw.draw(st.sampled_from(left)).pop(0))

    assert arrived([*chunks(sent, draw), _chunk({}, "tool_calls")]) == (calls, {}, "")


@EXAMPLES
@given(CALLS.filter(bool), STYLES, st.data())
def test_no_incomplete_call_of_a_truncated_reply_runs(calls: list[Call], style: str, draw: st.DataObject) -> None:
    sent = deltas(calls, style, draw)
    kept = sent[: draw.draw(st.integers(1, len(sent)))]

    got, told, _ = arrived([*chunks(kept, draw), _chunk({}, "length")])

    runnable = [call for position, call in enumerate(got) if str(position) not in told]
    assert runnable == calls[: len(got) - 1]
    assert "output limit" in told[str(len(got) - 1)]


@EXAMPLES
@given(CALLS.filter(bool), STYLES, st.data())
def test_a_broken_stream_gives_no_message(calls: list[Call], style: str, draw: st.DataObject) -> None:
    sent = chunks(deltas(calls, style, draw), draw)
    kept = sent[: draw.draw(st.integers(0, len(sent)))]

    with pytest.raises((BrokenReply, NoMessage), match=r"the connection closed in the middle|it has no choices"):
        arrived(kept)


@EXAMPLES
@given(
    st.recursive(_VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3)),
    st.data(),
)
def test_whatever_a_chunk_holds_the_message_can_be_stored_and_sent_again(odd: Any, draw: st.DataObject) -> None:
    places: list[dict[str, Any]] = [
        {"choices": odd},
        {"choices": [{"delta": odd, "finish_reason": "stop"}]},
        {"choices": [{"delta": {"content": odd}}]},
        {"choices": [{"delta": {"tool_calls": odd}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": odd, "id": odd, "function": odd}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": odd, "arguments": odd}}]}}]},
        {"choices": [{"delta": {"reasoning": odd}, "finish_reason": odd}], "usage": odd, "model": odd},
    ]
    payload = json.dumps(draw.draw(st.sampled_from(places)))

    got, told, _ = arrived([payload, _chunk({"content": "end"}, "stop")])

    assert all(isinstance(arguments, dict) for _, arguments in got)
    assert {int(position) for position in told} <= set(range(len(got)))
    assert all(name and json.dumps(arguments).encode() for name, arguments in got)
