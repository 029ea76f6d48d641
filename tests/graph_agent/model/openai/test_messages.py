import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph_agent.model.openai.messages import ThinkingFilter, has_images, insert_images, strip_thinking

_STORE = {"blob:a": b"A", "blob:b": b"B"}


def _tool(call_id: str, *references: str) -> ToolMessage:
    images = [{"blob": reference, "media_type": "image/png"} for reference in references]
    return ToolMessage("told", tool_call_id=call_id, additional_kwargs={"images": images} if images else {})


def _image(data: bytes) -> dict[str, object]:
    address = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}


def test_images_follow_the_last_result_of_their_batch() -> None:
    history: list[BaseMessage] = [
        HumanMessage("look"),
        AIMessage("", tool_calls=[]),
        _tool("1", "blob:a"),
        _tool("2"),
        _tool("3", "blob:b"),
        AIMessage("seen"),
    ]

    shown = insert_images(history, _STORE.get)

    assert [message.type for message in shown] == ["human", "ai", "tool", "tool", "tool", "human", "ai"]
    assert shown[5].content[1:] == [_image(b"A"), _image(b"B")]
    assert [one for one in shown if one not in history] == [shown[5]]


def test_images_that_are_gone_are_left_out_and_histories_without_any_stay_as_they_are() -> None:
    assert insert_images([_tool("1", "blob:gone")], _STORE.get) == [_tool("1", "blob:gone")]
    assert [has_images([_tool("1")]), has_images([_tool("1", "blob:a")])] == [False, True]


def test_only_the_newest_images_are_sent() -> None:
    shown = insert_images([_tool("1", *["blob:a"] * 15), AIMessage("x"), _tool("2", *["blob:b"] * 15)], _STORE.get)

    sent = [part for message in shown if message.type == "human" for part in message.content[1:]]
    older = {"type": "text", "text": "[10 older images not sent again]"}
    assert sent == [older] + [_image(b"A")] * 5 + [_image(b"B")] * 15


def test_images_of_one_request_have_a_size_together() -> None:
    large = dict.fromkeys(["blob:1", "blob:2", "blob:3"], bytes(4_300_000)) | {"blob:4": bytes(13_000_000)}
    history = [_tool("1", "blob:1"), AIMessage("x"), _tool("2", "blob:2"), AIMessage("x"), _tool("3", "blob:3")]

    def sent(messages: list[BaseMessage]) -> list[str]:
        shown: list[Any] = [one.content for one in insert_images(messages, large.get) if one.type == "human"]
        return [part.get("text", part["type"]) for parts in shown for part in parts]

    after = "The images of the results above, in their order."
    older = "[1 older image not sent again]"
    assert sent(history) == [after, older, after, "image_url", after, "image_url"]
    assert sent([_tool("4", "blob:4")]) == [after, older]


def test_an_image_of_a_user_message_becomes_part_of_it() -> None:
    images = [{"blob": "blob:a", "media_type": "image/png"}, {"blob": "blob:gone"}]
    said = HumanMessage("look", additional_kwargs={"images": images})

    shown = insert_images([said, AIMessage("seen")], _STORE.get)

    assert shown == [HumanMessage([{"type": "text", "text": "look"}, _image(b"A")]), AIMessage("seen")]


def told_apart(pieces: list[str]) -> tuple[str, str]:
    sorter = ThinkingFilter()
    told = [piece for text in pieces for piece in sorter.feed(text)] + sorter.flush()
    return tuple("".join(text for kind, text in told if kind == wanted) for wanted in ("reasoning", "text"))  # type: ignore[return-value] # two kinds, two texts


@pytest.mark.parametrize(
    ("whole", "reasoning", "text"),
    [
        ("hello", "", "hello"),
        ("<think>plan</think>\n\nhello", "plan", "hello"),
        ("\n<think>plan</think>", "plan", ""),
        ("<think>never closed", "never closed", ""),
        ("<thinker> hello", "", "<thinker> hello"),
        ("say <think>x</think>", "", "say <think>x</think>"),
        ("<think>a < b </thin k></think>c", "a < b </thin k>", "c"),
        ("<", "", "<"),
        ("<thinking>plan</think></thinking>hello", "plan</think>", "hello"),
        ("<thought>plan</thought>hello", "plan", "hello"),
        ("[THINK]plan[/THINK]hello", "plan", "hello"),
        ("[THIN", "", "[THIN"),
        ("<think>a</think>\n<think>b</think> hello", "ab", "hello"),
        ("<think></think>\n <thi", "", "<thi"),
        ("<seed:think>plan</seed:think>hello", "plan", "hello"),
        ("◁think▷plan◁/think▷hello", "plan", "hello"),
    ],
)
def test_thinking_at_the_beginning_is_separated_however_it_is_split(whole: str, reasoning: str, text: str) -> None:
    assert told_apart([whole]) == (reasoning, text)
    assert told_apart(list(whole)) == (reasoning, text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", "a", " ", "\n"]), max_size=12))
def test_cutting_the_text_differently_changes_nothing(pieces: list[str]) -> None:
    assert told_apart(pieces) == told_apart(["".join(pieces)])


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("plan\n</think>\n\nhello", "hello"),
        ("</think>\nhello", "hello"),
        ("the tag `</think>` ends it", "the tag `</think>` ends it"),
        ("a\n</think>\nb\n</think>\nc", "a\n</think>\nb\n</think>\nc"),
        ("write <think>\nx\n</think>\n", "write <think>\nx\n</think>\n"),
    ],
)
def test_after_a_lone_end_of_thinking_the_text_begins(text: str, rest: str) -> None:
    assert strip_thinking(text) == rest
