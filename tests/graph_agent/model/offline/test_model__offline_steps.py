from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph_agent.model.offline.commands import ListFiles, RunShell
from graph_agent.model.offline.model import Ended, finished_since, newest_prompt, step_of
from graph_agent.model.offline.plan import Call, Result

TOOLS = frozenset(("ls", "bash"))
COMMANDS = (ListFiles("src"), RunShell("make"), ListFiles())


def test_the_results_at_hand_say_which_call_comes_next() -> None:
    listed, failed = ("ls", Result("a.py", is_error=False)), ("bash", Result("no", is_error=True))

    steps = [step_of(COMMANDS, TOOLS, list(done), chinese=False) for done in ((), (listed,), (listed, failed))]

    assert steps == [
        Call("ls", {"path": "src"}),
        Call("bash", {"command": "make"}),
        Ended("src:\na.py\n\nNot done: make\nno\n\nThe 1 command after it did not run.", "not done: make"),
    ]


def test_what_a_person_decided_is_told_by_no_words_of_a_failing_command() -> None:
    said = "Cancelled by the server"
    failed, refused = Result(said, is_error=True), Result(said, is_error=True, is_decided=True)

    unmet = [step_of([RunShell("make")], TOOLS, [("bash", result)], chinese=False) for result in (failed, refused)]

    assert unmet == [Ended(f"Not done: make\n{said}", "not done: make"), Ended(f"Not done: make\n{said}")]


def test_results_are_those_of_the_calls_of_these_messages() -> None:
    asked = AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "1"}])
    messages: list[BaseMessage] = [asked, ToolMessage("a", tool_call_id="1"), ToolMessage("b", tool_call_id="2")]

    assert finished_since(messages) == [("ls", Result("a", is_error=False))]


def test_the_newest_message_of_the_user_is_found() -> None:
    assert newest_prompt([HumanMessage("a"), AIMessage("b"), HumanMessage("c"), AIMessage("d")]) == 2
    assert newest_prompt([AIMessage("b")]) == -1
