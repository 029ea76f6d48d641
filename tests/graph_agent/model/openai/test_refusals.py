"""One refused image, function or text never blocks later requests, and is never taken for a missing ability."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ContextOverflow, ModelError
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore, revise_capabilities
from graph_agent.model.openai.endpoint import ModelOptions, OpenAIModel, TruncationCheck
from graph_agent.model.openai.errors import Failure
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.openai_server import ERR, TXT, FakeOpenAI, Reply

BLOBS = {f"blob:{name}": name.encode() for name in ("old", "mid", "new")}


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


TOOLS = [tool("read_file"), tool("task"), tool("mcp__s__bad")]


def looked(*names: str) -> list[BaseMessage]:
    """A history in which these images were read, one after the other."""
    history: list[BaseMessage] = [HumanMessage("look")]
    for name in names:
        image = {"blob": f"blob:{name}", "media_type": "image/png", "name": f"{name}.png"}
        call = {"name": "read_file", "args": {}, "id": name}
        history += (
            AIMessage("I look.", tool_calls=[call]),
            ToolMessage(f"{name}.png is an image", tool_call_id=name, additional_kwargs={"images": [image]}),
        )
    return history


def images_in(body: dict[str, Any]) -> list[str]:
    """The names of the images in a request."""
    parts = [part for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]).decode() for url in urls]


class Conversation:
    """Several requests to one model, which is on a server."""

    def __init__(self, server: FakeOpenAI, learned: Path | None = None) -> None:
        options = ModelOptions(CapabilityStore(learned), load_image=BLOBS.get)
        self.model = OpenAIModel(ModelSettings(base_url=server.base_url), "m", options)
        self.notes: list[str] = []

    async def ask(self, messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]] = TOOLS) -> str:
        return (await self.model.reply(ModelRequest(messages, tools), self._note)).text

    def _note(self, delta: Delta) -> None:
        if delta.kind == "note":
            self.notes.append(delta.text)


REFUSED_IMAGE = [
    (413, "failed to parse request"),
    (413, ""),
    (400, "media exceeds size limit: max 10485760 bytes (2013)"),
    (400, "Invalid PNG image."),
    (400, "Timeout while downloading image"),
    (400, "Your request was rejected: the image may contain unsafe content"),
    (400, "You uploaded an unsupported image. Please make sure your image is below 20 MB"),
    (400, "Unsupported image format: image/webp"),
    (400, "this image type is not supported"),
    (400, "The image dimensions exceed the max allowed size: 8000 pixels"),
    (400, "Could not process image"),
    (400, "messages.3.content.1.image.source.base64: invalid base64 data"),
    (400, "too many images: at most 5 images are supported"),
    (422, "Failed to load the picture"),
    (400, "tool use is not supported with image input"),
    (400, "Bad Request"),
]


@pytest.mark.parametrize(("status", "said"), REFUSED_IMAGE)
async def test_a_refused_image_is_only_named_and_nothing_is_learned_of_the_model(
    status: int, said: str, tmp_path: Path
) -> None:
    with FakeOpenAI([ERR(status, said), ERR(status, said)], after=TXT("fine")) as server:
        conversation = Conversation(server, tmp_path / "learned.json")
        first = await conversation.ask(looked("old", "new"))
        second = await conversation.ask([*looked("old", "new"), AIMessage("fine"), HumanMessage("and now?")])
        third = await conversation.ask(looked("old", "new", "mid"))
        await conversation.model.close()

    sent = [images_in(body) for body in server.bodies]
    # The newest alone, then none; what was refused is never sent again, but a new image is.
    assert (sent, first, second, third) == ([["old", "new"], ["new"], [], [], ["mid"]], "fine", "fine", "fine")
    assert "1 image not sent: the server refused it" in json.dumps(server.bodies[2])
    assert [note.rpartition("without ")[2] for note in conversation.notes] == ["old.png.", "new.png."]
    assert CapabilityStore(tmp_path / "learned.json").learned(server.base_url, "m") == ()


NO_IMAGES = [
    (400, "Invalid content type. image_url is only supported by certain models."),
    (404, "No endpoints found that support image input"),
    (400, "Model does not support images. Please use a model that does."),
    (400, "This model does not support image inputs"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (400, "Failed to deserialize: messages[1]: unknown variant `image_url`, expected `text` at line 1"),
    (400, "Image input is not enabled for this model"),
    (400, "messages[0].content must be a string"),
    (400, "llama3:8b is not a multimodal model"),
    (400, "At most 0 image(s) may be provided in one prompt."),
    (400, "this model is missing data required for image input"),
    (400, "vision is not supported by this model"),
    (422, "multimodal content is not supported"),
    (400, "The model is text-only: it cannot process images"),
    (501, "images are not supported"),
]


@pytest.mark.parametrize(("status", "said"), NO_IMAGES)
async def test_a_model_without_sight_is_learned_for_a_day(status: int, said: str, tmp_path: Path) -> None:
    with FakeOpenAI([ERR(status, said)], after=TXT("fine")) as server:
        conversation = Conversation(server, tmp_path / "learned.json")
        answer = await conversation.ask(looked("old", "new"))
        await conversation.model.close()

    assert ([images_in(body) for body in server.bodies], answer) == ([["old", "new"], []], "fine")
    assert [one.name for one in CapabilityStore(tmp_path / "learned.json").learned(server.base_url, "m")] == [
        "images"
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("does not support tool use in streaming mode", Capabilities(streaming=False)),
        ("tool calling is not supported when streaming", Capabilities(streaming=False)),
        ("tools are not supported with image input", None),
        ("function calling is not supported with images", None),
        ("this model does not support tools", Capabilities(function_calling=False)),
    ],
)
def test_words_about_two_abilities_turn_off_the_one_that_is_needed_less(
    said: str, expected: Capabilities | None
) -> None:
    failure = Failure("final", said, 400, said)
    assert (
        revise_capabilities(Capabilities(), failure, ModelRequest(looked("new"), TOOLS), ModelSettings())
        == expected
    )


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Invalid schema for function 'mcp__s__bad': {} is not of type 'object'", ["read_file", "task"]),
        ("Invalid 'tools[2].function.parameters': unknown type", ["read_file", "task"]),
        ("tools.1.custom.input_schema: JSON schema is invalid", ["read_file", "mcp__s__bad"]),
        ("GenerateContentRequest.tools[0].function_declarations: schema not supported", ["task", "mcp__s__bad"]),
        ("mcp__s__bad: `$ref` in parameters is not supported", ["read_file", "task"]),
        ("Invalid 'tools': array too long. Expected an array with maximum length 2", ["read_file", "task"]),
        ("at most 1 tools may be given", ["read_file"]),
    ],
)
async def test_a_function_that_the_server_refuses_is_left_out(said: str, left: list[str]) -> None:
    with FakeOpenAI([ERR(400, said)], after=TXT("fine")) as server:
        conversation = Conversation(server)
        answers = [await conversation.ask([HumanMessage("hi")]) for _ in range(2)]
        await conversation.model.close()

    offered = [[one["function"]["name"] for one in body["tools"]] for body in server.bodies]
    assert (offered, answers) == ([["read_file", "task", "mcp__s__bad"], left, left], ["fine", "fine"])
    assert len(conversation.notes) == 1
    assert all(name in conversation.notes[0] for name in {"read_file", "task", "mcp__s__bad"} - set(left))


async def test_more_tools_than_the_server_takes_are_left_out_from_the_end() -> None:
    tools = [tool(f"tool_{number}") for number in range(200)]
    said = "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 200 instead."
    with FakeOpenAI([ERR(400, said)], after=TXT("fine")) as server:
        conversation = Conversation(server)
        answer = await conversation.ask([HumanMessage("hi")], tools)
        await conversation.model.close()

    assert ([len(body["tools"]) for body in server.bodies], answer) == ([200, 128], "fine")
    assert (
        "72 tools: tool_128, tool_129, tool_130, tool_131, tool_132 and 67 more left out" in conversation.notes[0]
    )


async def test_a_server_that_refuses_tool_after_tool_is_asked_three_times() -> None:
    tools = [tool(f"tool_{number}") for number in range(9)]
    refusals = [ERR(400, f"Invalid schema for function 'tool_{number}'") for number in range(9)]
    with FakeOpenAI(refusals) as server:
        conversation = Conversation(server)
        with pytest.raises(ModelError, match=r"'tool_2'.* It refuses one tool after another"):
            await conversation.ask([HumanMessage("hi")], tools)
        await conversation.model.close()

    assert [len(body["tools"]) for body in server.bodies] == [9, 8, 7]


FILTERED = [
    (400, "The response was filtered due to the prompt triggering our content management policy [content_filter]"),
    (400, "data_inspection_failed: input data may contain inappropriate content"),
    (403, "Your request was flagged by our moderation system"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said"), FILTERED)
async def test_a_result_that_a_content_filter_refuses_is_left_out(status: int, said: str) -> None:
    history = [
        HumanMessage("read it"),
        AIMessage("", tool_calls=[{"name": "read_file", "args": {}, "id": "c"}]),
        ToolMessage("bad words", tool_call_id="c"),
    ]
    with FakeOpenAI([ERR(status, said)], after=TXT("fine"), strict=True) as server:
        conversation = Conversation(server)
        answer = await conversation.ask(history)
        later = await conversation.ask([*history, AIMessage("fine"), HumanMessage("next")])
        await conversation.model.close()

    assert (answer, later, server.faults, len(server.bodies)) == ("fine", "fine", [], 3)
    assert ["bad words" in json.dumps(body) for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize(("status", "said"), FILTERED)
async def test_a_message_that_a_content_filter_refuses_fails_its_turn_and_no_later_one(
    status: int, said: str
) -> None:
    refused = ERR(status, said)
    with FakeOpenAI([refused, refused], after=TXT("fine")) as server:
        conversation = Conversation(server)
        with pytest.raises(ModelError):
            await conversation.ask([HumanMessage("bad words")])
        # The message stays in the history without an answer, also for a process that knows nothing of the refusal.
        later = Conversation(server)
        answer = await later.ask([HumanMessage("bad words"), HumanMessage("good words")])
        for one in (conversation, later):
            await one.model.close()

    assert answer == "fine"
    assert ["bad words" in json.dumps(body) for body in server.bodies] == [True, True, False]


@pytest.mark.parametrize(
    "reply", [ERR(400, "Invalid PNG image."), ERR(413, ""), ERR(400, "Invalid schema for function 'task'")]
)
async def test_what_is_still_refused_ends_after_a_few_requests(reply: Reply) -> None:
    with FakeOpenAI([], after=reply) as server:
        conversation = Conversation(server)
        with pytest.raises(ModelError):
            await conversation.ask(looked("old", "mid", "new"))
        await conversation.model.close()

    assert len(server.bodies) <= 4


async def test_a_request_that_is_too_large_without_images_is_for_compaction() -> None:
    with FakeOpenAI([], after=ERR(413, "too large")) as server:
        conversation = Conversation(server)
        with pytest.raises(ContextOverflow):
            await conversation.ask(looked("new"))
        await conversation.model.close()

    assert [images_in(body) for body in server.bodies] == [["new"], []]


async def test_a_character_that_servers_refuse_is_shown_as_its_picture() -> None:
    with FakeOpenAI([], after=TXT("fine")) as server:
        conversation = Conversation(server)
        await conversation.ask([HumanMessage("a\0b and \\u0000 and \\\\\0")])
        await conversation.model.close()

    assert server.bodies[0]["messages"][-1]["content"] == "a␀b and \\u0000 and \\\\␀"


@pytest.mark.parametrize(
    ("requests", "noted"),
    [
        ([(13, 2051), (60, 2051), (107, 2051)], [False, True, False]),
        ([(13, 4000), (60, 15000), (107, 26000)], [False, False, False]),
        ([(100, 4096)], [True]),
        ([(100, 12000), (40, 6000), (90, 11000)], [False, False, False]),
        ([(20, 500), (21, 500)], [False, False]),
        ([(60, 0), (120, 0)], [False, False]),
        ([(60, 10), (120, 10)], [False, False]),
    ],
)
def test_a_server_that_reads_less_than_was_sent_is_noticed_once(
    requests: list[tuple[int, int]], noted: list[bool]
) -> None:
    check = TruncationCheck()
    replies = [
        AIMessage("", usage_metadata={"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1})
        for _, tokens in requests
    ]
    notes = [check.note(size * 1000, reply) for (size, _), reply in zip(requests, replies, strict=True)]

    assert [bool(note) for note in notes] == noted
    assert all("context_window = " in note for note in notes if note)
