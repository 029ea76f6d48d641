"""Shows a model a small image, as a tool's result, and looks whether it tells what is on it."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.app.red_square import red_square
from graph_agent.config.model_settings import ModelSettings
from graph_agent.errors import ModelError
from graph_agent.model.openai import OpenAIModel, Surroundings
from graph_agent.ports import Delta, ModelRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Look", "show_square"]

_TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file; images are shown.",
        "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    },
}


@dataclass(frozen=True, slots=True)
class Look:
    """What came of it."""

    ok: bool
    detail: str
    is_blind: bool = False
    """The endpoint refused the image, or the answer knows nothing of it; an error of another kind says neither."""


async def show_square(settings: ModelSettings, name: str) -> Look:
    """Ask for the colour of a red square; what the endpoint refuses meanwhile is not remembered."""
    said: list[Delta] = []
    model = OpenAIModel(settings, name, Surroundings(image=lambda _: red_square()))
    try:
        reply = await model.reply(ModelRequest(_conversation(), (_TOOL,)), said.append)
    except ModelError as failure:
        return Look(ok=False, detail=str(failure))
    finally:
        await model.close()
    if any(delta.kind == "note" and "images" in delta.text for delta in said):
        return Look(ok=False, detail="the endpoint refuses them", is_blind=True)
    if re.search(r"\bred\b|红|紅", reply.text.lower()):
        return Look(ok=True, detail="it tells the colour of one")
    return Look(ok=False, detail="it does not tell the colour of one", is_blind=True)


def _conversation() -> list["BaseMessage"]:
    call = {"name": "read_file", "args": {"file_path": "square.png"}, "id": "call_1"}
    image = {"blob": "square", "media_type": "image/png"}
    return [
        HumanMessage("Read square.png, then answer with the one word that names its colour."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("An image.", tool_call_id="call_1", name="read_file", additional_kwargs={"images": [image]}),
    ]
