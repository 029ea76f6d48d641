import pytest
from langchain_core.messages import HumanMessage

from graph_agent.app.custom_model import CustomModel
from graph_agent.errors import ConfigError, ModelError, UsageError
from graph_agent.ports import Delta, ModelRequest

_HERE = "tests.fakes.model_factories"
_REQUEST = ModelRequest([HumanMessage("hi")], ({"type": "function", "function": {"name": "f"}},))


async def test_what_a_factory_makes_answers_in_pieces_and_its_failures_are_told() -> None:
    model = CustomModel(f"{_HERE}:speaks")
    pieces: list[Delta] = []

    reply = await model.reply(_REQUEST, pieces.append)

    assert (reply.text, "".join(piece.text for piece in pieces)) == ("hello there", "hello there")
    assert model.label.endswith(f" @ {_HERE}:speaks")
    with pytest.raises(ModelError, match="failed: "):
        await model.reply(_REQUEST, pieces.append)
    with pytest.raises(UsageError, match="makes the model here"):
        await model.switch("other")


async def test_a_call_that_is_cut_off_is_said_to_be_so_and_an_empty_reply_is_asked_for_again() -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    reply = await CustomModel(f"{_HERE}:cuts", sleep=note).reply(_REQUEST, lambda _: None)

    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("f", {})]
    assert "cut off" in reply.response_metadata["unusable_arguments"]["0"]
    assert len(waits) == 1


async def test_a_model_that_knows_no_functions_is_given_the_tools_as_text() -> None:
    model = CustomModel(f"{_HERE}:knows_no_functions")

    reply = await model.reply(_REQUEST, lambda _: None)

    assert ([call["name"] for call in reply.tool_calls], reply.text) == (["f"], "")


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (f"{_HERE}:fails", "RuntimeError: no licence"),
        (f"{_HERE}:makes_nothing", "made a str, and no LangChain chat model"),
        (f"{_HERE}:missing", "AttributeError"),
        ("no.such.module:make", "ModuleNotFoundError"),
    ],
)
def test_a_line_that_makes_no_model_is_named(factory: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        CustomModel(factory)
