import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph_agent.model.local.actions import (
    Answer,
    Choose,
    Done,
    Next,
    Rewrite,
    Taken,
    next_step,
    taken_since,
    to_change,
)
from graph_agent.model.offline.plan import Call

UNREAD = "Error: 'f' exists and was not read in this conversation; read it with read_file first."


def taken(tool: str, result: str = "ok", said: str = "", *, bad: bool = False, **arguments: str) -> Taken:
    return Taken(tool, arguments, said, result, bad)


READ = taken("read_file", "     1\tx", file_path="f")
TO_CHANGE = taken("read_file", "     1\tx", to_change("f"), file_path="f")
WRITE = taken("write_file", "Wrote f.", file_path="f", content="y")
TOO_EARLY = taken("write_file", UNREAD, bad=True, file_path="f", content="y")
MISSING = taken("read_file", "Error: no such file", bad=True, file_path="f")
OTHER = taken("read_file", "Error: no such file", bad=True, file_path="g")
MAKE = taken("bash", "[exit code 2]", bad=True, command="make")


@pytest.mark.parametrize(
    ("before", "following"),
    [
        ([], Choose()),
        ([READ], Answer(READ)),
        ([TO_CHANGE], Rewrite("f", "     1\tx")),
        ([TO_CHANGE, WRITE], Done("Done. Wrote f.")),
        ([TOO_EARLY], Call("read_file", {"file_path": "f"})),
        ([TOO_EARLY, READ], Call("write_file", {"file_path": "f", "content": "y"})),
        ([TOO_EARLY, READ, TOO_EARLY], Done(f"Not done. {UNREAD}")),
        ([MAKE], Answer(MAKE)),
        ([MISSING], Choose()),
        ([MISSING, OTHER], Choose()),
        ([MISSING, MISSING], Done("Not done. Error: no such file")),
        ([MISSING, OTHER, MISSING], Done("Not done. Error: no such file")),
        ([taken("bash", "Not run: refused", bad=True, command="x")], Done("Not run: refused")),
    ],
)
def test_each_history_of_a_turn_has_one_next_step(before: list[Taken], following: Next) -> None:
    assert next_step(before) == following


def test_the_calls_of_a_turn_come_with_their_results_and_what_was_said() -> None:
    asked = AIMessage("why", tool_calls=[{"name": "ls", "args": {"path": "."}, "id": "1"}])
    foreign = ToolMessage("?", tool_call_id="2")
    messages: list[BaseMessage] = [asked, ToolMessage("bad", tool_call_id="1", status="error"), foreign]

    assert taken_since(messages) == [Taken("ls", {"path": "."}, "why", "bad", is_error=True)]
