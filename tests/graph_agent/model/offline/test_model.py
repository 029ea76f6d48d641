import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.model.offline.model import Answer, OfflineModel, finished_calls, last_prompt, next_step
from graph_agent.model.offline.parser import Command
from graph_agent.model.offline.plan import CallResult, PlannedCall
from graph_agent.ports import Delta, ModelRequest

Asked = tuple[str, dict[str, Any]]
Tool = Callable[[dict[str, Any]], str]

ALL = ("ls", "read_file", "write_file", "bash")


def declared(names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]


async def ask(
    prompt: str, tools: dict[str, Tool], earlier: Sequence[BaseMessage] = ()
) -> tuple[list[Asked], list[BaseMessage]]:
    """Leads a turn as the graph does; a tool that raises ValueError gives an error result."""
    messages: list[BaseMessage] = [SystemMessage("be kind"), *earlier, HumanMessage(prompt)]
    asked: list[Asked] = []
    while True:
        reply = await OfflineModel().reply(ModelRequest(messages, declared(list(tools))), lambda _: None)
        messages.append(reply)
        if not reply.tool_calls:
            return asked, messages
        (call,) = reply.tool_calls
        asked.append((call["name"], call["args"]))
        messages.append(answer(tools[call["name"]], call["args"], str(call["id"])))


def answer(tool: Tool, args: dict[str, Any], call_id: str) -> ToolMessage:
    try:
        return ToolMessage(tool(args), tool_call_id=call_id)
    except ValueError as error:
        return ToolMessage(str(error), tool_call_id=call_id, status="error")


def saying(text: str) -> Tool:
    return lambda _: text


def failing(text: str) -> Tool:
    def fail(_: dict[str, Any]) -> str:
        raise ValueError(text)

    return fail


class Files:
    """A workspace that refuses to overwrite what was not read, as the real tools do."""

    def __init__(self, **files: str) -> None:
        self.files = {name.replace("_", "."): text for name, text in files.items()}
        self.seen: set[str] = set()

    def tools(self) -> dict[str, Tool]:
        return {"ls": lambda _: "\n".join(self.files), "read_file": self.read, "write_file": self.write}

    def read(self, args: dict[str, Any]) -> str:
        self.seen.add(args["file_path"])
        lines = self.files[args["file_path"]].split("\n")[:-1]
        return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1)) or "(the file is empty)"

    def write(self, args: dict[str, Any]) -> str:
        if args["file_path"] in self.files and args["file_path"] not in self.seen:
            raise ValueError("Error: exists and was not read in this conversation; read it with read_file first.")
        self.files[args["file_path"]] = args["content"]
        return "wrote it"


async def test_joined_commands_become_one_call_per_message_and_a_summary() -> None:
    files = Files(a_txt="x\n")

    asked, messages = await ask("list the files, then create hello.txt saying hi", files.tools())

    assert asked == [("ls", {"path": "."}), ("write_file", {"file_path": "hello.txt", "content": "hi\n"})]
    assert messages[-1].text.endswith(".:\na.txt\n\nhello.txt:\nwrote it")


async def test_only_the_first_answer_of_a_thread_says_that_there_is_no_model() -> None:
    _, messages = await ask("list", Files().tools())
    first = messages[-1].text

    _, again = await ask("list", Files().tools(), messages[1:])

    assert first.startswith(f"({OFFLINE_LABEL}: ")
    assert OFFLINE_LABEL not in again[-1].text


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ("make me a website", ("Not understood: 'make me a website'", "create FILE with TEXT", "OPENAI_API_KEY")),
        ("早上好", ("未能理解：'早上好'", "创建 文件 内容为 文字", "连接模型：设置 OPENAI_API_KEY")),
    ],
)
async def test_unknown_text_gets_the_list_of_commands_and_how_to_connect_a_model(
    prompt: str, parts: tuple[str, ...]
) -> None:
    asked, messages = await ask(prompt, Files().tools())

    assert (asked, [part in messages[-1].text for part in parts]) == ([], [True] * 3)
    assert messages[-1].text.count("OPENAI_API_KEY") == 1


async def test_a_file_that_was_not_read_is_read_before_it_is_overwritten() -> None:
    files = Files(a_txt="old\n")

    asked, _ = await ask("create a.txt with new", files.tools())

    assert [tool for tool, _ in asked] == ["write_file", "read_file", "write_file"]
    assert files.files == {"a.txt": "new\n"}


async def test_append_and_replace_rewrite_what_was_read() -> None:
    files = Files(a_txt="one\n\ttwo\n", b_txt="")

    await ask("append three to a.txt, then replace two by 2 in a.txt, then append x to b.txt", files.tools())

    assert files.files == {"a.txt": "one\n\t2\nthree\n", "b.txt": "x\n"}


async def test_replace_goes_through_edit_file_where_it_is_offered() -> None:
    asked, _ = await ask("replace a by b in f.txt", {"edit_file": saying("edited"), "read_file": saying("")})

    expected = {"file_path": "f.txt", "old_string": "a", "new_string": "b", "replace_all": True}
    assert asked == [("edit_file", expected)]


async def test_after_a_rejected_call_the_rest_is_not_run_and_the_answer_says_so() -> None:
    refused = failing("Not run: the user rejected this call. The user said: not now")

    asked, messages = await ask("run make, then list, then list", {"bash": refused, "ls": saying("a")})

    assert asked == [("bash", {"command": "make"})]
    assert messages[-1].text.endswith(
        "Not done: make\nNot run: the user rejected this call. The user said: not now\n\n"
        "The 2 commands after it did not run."
    )


async def test_find_and_search_use_the_shell_only_where_their_tools_are_not_offered() -> None:
    prompt = "find files *.py in -x, then search it's in src"
    tools = {"glob": saying("a.py"), "grep": saying("1"), "bash": saying("x")}

    with_tools, _ = await ask(prompt, tools)
    without, _ = await ask(prompt, {"bash": saying("x")})

    assert with_tools == [
        ("glob", {"pattern": "*.py", "path": "-x"}),
        ("grep", {"pattern": "it's", "path": "src", "literal": True}),
    ]
    assert without == [
        ("bash", {"command": "find ./-x -not -path '*/.*' -name '*.py'"}),
        ("bash", {"command": "grep -rnIF -e 'it'\"'\"'s' -- src || [ $? -eq 1 ]"}),
    ]


async def test_the_same_history_gives_the_same_next_call_under_a_new_id() -> None:
    request = ModelRequest([HumanMessage("list src")], declared(ALL))

    first, second = [await OfflineModel().reply(request, lambda _: None) for _ in range(2)]

    assert [(call["name"], call["args"]) for call in first.tool_calls] == [("ls", {"path": "src"})]
    assert first.tool_calls[0]["id"] != second.tool_calls[0]["id"]
    assert (first.text, first.tool_calls[0]["args"]) == (second.text, second.tool_calls[0]["args"])


async def test_calls_of_another_model_in_the_same_turn_are_ignored() -> None:
    other = AIMessage("", tool_calls=[{"name": "grep", "args": {}, "id": "g1"}])
    history = [HumanMessage("list"), other, ToolMessage("hits", tool_call_id="g1")]

    reply = await OfflineModel().reply(ModelRequest(history, declared(ALL)), lambda _: None)

    assert [call["name"] for call in reply.tool_calls] == ["ls"]


async def test_text_and_calls_are_streamed() -> None:
    shown: list[Delta] = []

    reply = await OfflineModel().reply(ModelRequest([HumanMessage("hm")], declared(ALL)), shown.append)
    await OfflineModel().reply(ModelRequest([HumanMessage("list")], declared(ALL)), shown.append)

    assert "".join(delta.text for delta in shown[:-1]) == reply.text
    assert shown[-1] == Delta("tool_call", '{"path": "."}', 0, "ls")


@pytest.mark.slow
@given(st.text(), st.lists(st.sampled_from(ALL)), st.booleans())
@settings(max_examples=150, deadline=None)
async def test_no_prompt_and_no_history_crashes_it(prompt: str, tools: list[str], is_error: bool) -> None:
    call = {"name": "ls", "args": {}, "id": "x"}
    result = ToolMessage(prompt, tool_call_id="x", status="error" if is_error else "success")
    histories: list[list[BaseMessage]] = [
        [],
        [HumanMessage(prompt)],
        [HumanMessage("append a to b, then " + prompt), AIMessage("", tool_calls=[call]), result],
    ]

    replies = [
        await OfflineModel().reply(ModelRequest(each, declared(tools)), lambda _: None) for each in histories
    ]

    assert all(reply.text or reply.tool_calls for reply in replies)


def test_the_offline_mode_loads_no_model_library() -> None:
    probe = (
        "import sys, graph_agent.model.offline.model, graph_agent.config.sources;"
        "print([name for name in ('openai', 'langchain_openai', 'langgraph') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


async def test_notices_come_with_a_call_and_with_an_answer_and_change_no_call() -> None:
    for prompt, called in (("read a.py", ["read_file"]), ("help", [])):
        request = ModelRequest([HumanMessage(prompt)], declared(ALL), ("sh1: exit code 1  $ make",))

        reply = await OfflineModel().reply(request, lambda _: None)

        assert [call["name"] for call in reply.tool_calls] == called
        assert reply.text.endswith("Ended in the background:\n- sh1: exit code 1  $ make")


STEP_TOOLS = frozenset(("ls", "bash"))
COMMANDS = (Command("list", "src"), Command("run", text="make"), Command("list", "."))


def test_the_results_so_far_decide_which_call_comes_next() -> None:
    listed, failed = CallResult("a.py", is_error=False, tool="ls"), CallResult("no", is_error=True, tool="bash")

    steps = [
        next_step(COMMANDS, STEP_TOOLS, list(done), chinese=False) for done in ((), (listed,), (listed, failed))
    ]

    assert steps == [
        PlannedCall("ls", {"path": "src"}),
        PlannedCall("bash", {"command": "make"}),
        Answer("src:\na.py\n\nNot done: make\nno\n\nThe 1 command after it did not run.", "not done: make"),
    ]


def test_a_call_that_a_person_rejected_is_no_failed_command() -> None:
    said = "Cancelled by the server"
    failed = CallResult(said, is_error=True, tool="bash")
    refused = replace(failed, is_decided=True)

    unmet = [
        next_step([Command("run", text="make")], STEP_TOOLS, [result], chinese=False)
        for result in (failed, refused)
    ]

    assert unmet == [Answer(f"Not done: make\n{said}", "not done: make"), Answer(f"Not done: make\n{said}")]


def test_only_calls_of_these_messages_with_a_result_are_finished() -> None:
    asked = AIMessage("why", tool_calls=[{"name": "ls", "args": {"path": "."}, "id": "1"}])
    other = ToolMessage("b", tool_call_id="2")
    messages: list[BaseMessage] = [asked, ToolMessage("a", tool_call_id="1", status="error"), other]

    expected = CallResult("a", is_error=True, tool="ls", arguments={"path": "."}, message="why")
    assert finished_calls(messages) == [expected]


def test_the_newest_message_of_the_user_is_found() -> None:
    assert last_prompt([HumanMessage("a"), AIMessage("b"), HumanMessage("c"), AIMessage("d")]) == 2
    assert last_prompt([AIMessage("b")]) == -1
