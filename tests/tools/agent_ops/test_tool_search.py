import pytest

from tools.agent_ops.tool_search import ToolSearchTool, with_deferred_names
from tools.base import BaseTool, ToolDescription


class Ticket(BaseTool):
    name = "open_ticket"
    description = ToolDescription("Opens a ticket\nin the tracker.", long="Never shown in a list.")


class Mail(BaseTool):
    name = "send_mail"
    display_name = "Letter"
    description = "Sends a mail to a person who has a ticket. " + "x" * 100


class Plain(BaseTool):
    name = "plain"


SEARCH = ToolSearchTool(lambda: [Ticket(), Mail(), Plain()])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("open_ticket", ["open_ticket"]),
        ("select:Plain, open_ticket", ["open_ticket", "plain"]),
        ("a letter", ["send_mail", "open_ticket", "plain"]),
        ("ticket tracker", ["open_ticket", "send_mail"]),
    ],
)
async def test_tools_are_found_by_name_or_by_the_most_words(query: str, names: list[str]) -> None:
    result = await SEARCH.execute(query=query)

    assert result.metadata == {"loaded_tools": names}
    assert [f"## {name}\n" in result.output for name in names] == [True] * len(names)


async def test_a_search_in_vain_names_what_there_is_and_an_empty_one_is_refused() -> None:
    result = await SEARCH.execute(query="zzz")

    found = "No tool matches 'zzz'. Deferred tools: open_ticket, send_mail, plain."
    assert (result.output, result.error, result.metadata) == (found, None, {"found": 0})
    assert SEARCH.validate({"query": " "}) == (await SEARCH.execute(query=" ")).error


def test_the_declaration_names_each_tool_in_one_line() -> None:
    declaration = {"type": "function", "function": {"name": "tool_search", "description": "Loads."}}

    described = with_deferred_names(declaration, [Ticket(), Mail(), Plain()])["function"]["description"]

    assert described.split("\n") == [
        "Loads.",
        "Deferred tools:",
        "- open_ticket: Opens a ticket in the tracker.",
        "- send_mail: Sends a mail to a person who has a ticket. " + "x" * 56 + "…",
        "- plain",
    ]
