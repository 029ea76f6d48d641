import base64

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph_agent.model.openai.messages import has_images, with_images

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

    shown = with_images(history, _STORE.get)

    assert [message.type for message in shown] == ["human", "ai", "tool", "tool", "tool", "human", "ai"]
    assert shown[5].content[1:] == [_image(b"A"), _image(b"B")]
    assert [one for one in shown if one not in history] == [shown[5]]


def test_images_that_are_gone_are_left_out_and_histories_without_any_stay_as_they_are() -> None:
    assert with_images([_tool("1", "blob:gone")], _STORE.get) == [_tool("1", "blob:gone")]
    assert [has_images([_tool("1")]), has_images([_tool("1", "blob:a")])] == [False, True]


def test_only_the_newest_images_are_sent() -> None:
    shown = with_images([_tool("1", *["blob:a"] * 15), AIMessage("x"), _tool("2", *["blob:b"] * 15)], _STORE.get)

    sent = [part for message in shown if message.type == "human" for part in message.content[1:]]
    assert sent == [_image(b"A")] * 5 + [_image(b"B")] * 15


def test_an_image_that_a_message_of_the_user_names_stands_in_it() -> None:
    images = [{"blob": "blob:a", "media_type": "image/png"}, {"blob": "blob:gone"}]
    said = HumanMessage("look", additional_kwargs={"images": images})

    shown = with_images([said, AIMessage("seen")], _STORE.get)

    assert shown == [HumanMessage([{"type": "text", "text": "look"}, _image(b"A")]), AIMessage("seen")]
