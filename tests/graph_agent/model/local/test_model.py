from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph_agent.errors import ModelError, UsageError
from graph_agent.model.local.model import LocalModel
from graph_agent.model.local.runtime import Completion
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.scripted_runtime import ScriptedRuntime, action
from tests.graph_agent.model.offline.test_model import Files, Tool, answer, declared, failing, saying

GREEN = saying("[exit code 0]")


def model_of(
    *replies: str | Completion | Exception, commands_first: bool = False
) -> tuple[LocalModel, ScriptedRuntime]:
    runtime = ScriptedRuntime(list(replies))
    path = Path("models/tiny.gguf")
    return LocalModel(path, runtime, context=4096, commands_first=commands_first), runtime


async def turn(
    model: LocalModel, prompt: str, tools: dict[str, Tool]
) -> tuple[list[tuple[str, dict[str, Any]]], list[BaseMessage]]:
    messages: list[BaseMessage] = [SystemMessage("long instructions"), HumanMessage(prompt)]
    asked: list[tuple[str, dict[str, Any]]] = []
    while True:
        reply = await model.reply(ModelRequest(messages, declared(list(tools))), lambda _: None)
        messages.append(reply)
        if not reply.tool_calls:
            return asked, messages
        (call,) = reply.tool_calls
        asked.append((call["name"], call["args"]))
        messages.append(answer(tools[call["name"]], call["args"], str(call["id"])))


async def test_one_action_is_chosen_run_and_answered_in_words() -> None:
    model, runtime = model_of(action("bash", command="pytest"), "All is green.")

    asked, messages = await turn(model, "do the tests pass?", {"bash": GREEN})

    assert (asked, messages[-1].text) == ([("bash", {"command": "pytest"})], "All is green.")
    assert [ask.schema is None for ask in runtime.asked] == [False, True]
    assert "long instructions" not in str(runtime.asked)


async def test_a_file_is_changed_by_reading_and_rewriting_it() -> None:
    files = Files(a_py="x = 1\ny = 2\n")
    model, _ = model_of(action("change_file", file_path="a.py"), "```python\nx = 2\ny = 2\n```")

    asked, messages = await turn(model, "let x be 2", files.tools())

    assert [tool for tool, _ in asked] == ["read_file", "write_file"]
    assert (files.files, messages[-1].text) == ({"a.py": "x = 2\ny = 2\n"}, "Done. wrote it")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("I would change x.", "gave no new text for a.py"),
        ("```\nx = 1\n```", "leave a.py as it is"),
        (Completion("```\nx = 3", is_complete=False), "did not finish"),
    ],
)
async def test_without_a_clear_new_text_nothing_is_changed(reply: str | Completion, told: str) -> None:
    files = Files(a_py="x = 1\n")
    model, _ = model_of(action("change_file", file_path="a.py"), reply)

    asked, messages = await turn(model, "let x be 2", files.tools())

    assert ([tool for tool, _ in asked], told in messages[-1].text) == (["read_file"], True)


async def test_a_file_that_is_too_long_is_not_sent_to_the_model() -> None:
    files = Files(a_py="x = 1\n" * 2_000)
    model, runtime = model_of(action("change_file", file_path="a.py"))

    _, messages = await turn(model, "let x be 2", files.tools())

    assert ("a.py is too long" in messages[-1].text, len(runtime.asked)) == (True, 1)


async def test_writing_over_a_file_that_was_not_read_reads_it_first() -> None:
    files = Files(a_py="old\n")
    model, runtime = model_of(action("write_file", file_path="a.py", content="new\n"))

    asked, _ = await turn(model, "make a.py", files.tools())

    assert [tool for tool, _ in asked] == ["write_file", "read_file", "write_file"]
    assert (files.files, len(runtime.asked)) == ({"a.py": "new\n"}, 1)


async def test_the_same_call_after_its_failure_ends_the_turn() -> None:
    again = action("read_file", file_path="no.py")
    model, runtime = model_of(again, again)

    asked, messages = await turn(model, "explain no.py", {"read_file": failing("Error: there is no no.py")})

    assert asked == [("read_file", {"file_path": "no.py"})]
    assert "asks for the same call again" in messages[-1].text
    assert "there is no no.py" in messages[-1].text
    assert "failed: Error: there is no no.py" in runtime.asked[1].messages[-1]["content"]


async def test_after_a_rejected_call_the_model_is_not_asked_again() -> None:
    model, runtime = model_of(action("bash", command="rm -rf src"))

    _, messages = await turn(model, "clean up", {"bash": failing("Not run: the user refused this call.")})

    assert (messages[-1].text, len(runtime.asked)) == ("Not run: the user refused this call.", 1)


async def test_a_choice_that_was_cut_off_is_not_run() -> None:
    model, _ = model_of(Completion('{"tool": "bash", "command": "rm -rf', is_complete=False))

    asked, messages = await turn(model, "clean up", {"bash": GREEN})

    assert (asked, "nothing was done" in messages[-1].text) == ([], True)


async def test_sure_commands_go_by_the_command_language_and_the_rest_to_the_model() -> None:
    tools = {"ls": saying("a.py"), "bash": GREEN}
    model, runtime = model_of(
        action("bash", command="pytest"), "Green.", action("reply", text="It is a list."), commands_first=True
    )

    listed, _ = await turn(model, "list the files, then run make test", tools)
    tested, _ = await turn(model, "run the tests", tools)
    talked, messages = await turn(model, "what is a list?", tools)

    assert listed == [("ls", {"path": "."}), ("bash", {"command": "make test"})]
    assert (tested, talked, messages[-1].text) == ([("bash", {"command": "pytest"})], [], "It is a list.")
    assert len(runtime.asked) == 3


@pytest.mark.parametrize("wish", ["change the port to 9090 in a.py", "run all of it", "run my tests"])
async def test_what_reads_like_a_command_but_is_a_wish_goes_to_the_model(wish: str) -> None:
    model, runtime = model_of(action("reply", text="?"), commands_first=True)

    await turn(model, wish, {"bash": GREEN, "edit_file": GREEN})

    assert len(runtime.asked) == 1


async def test_loading_is_told_once_and_words_are_shown_as_they_come() -> None:
    model, _ = model_of(action("bash", command="x"), "one\ntwo")
    shown: list[Delta] = []
    history: list[BaseMessage] = [HumanMessage("do x")]
    request = ModelRequest(history, declared(["bash"]))

    first = await model.reply(request, shown.append)
    history += [first, answer(GREEN, {}, str(first.tool_calls[0]["id"]))]
    last = await model.reply(request, shown.append)

    assert [delta.kind for delta in shown] == ["note", "tool_call", "text", "text"]
    assert ("Loading tiny (local, limited)" in shown[0].text, last.text) == (True, "one\ntwo")


async def test_a_reply_has_its_tokens_and_the_name_of_the_model() -> None:
    model, _ = model_of(action("reply", text="hi"))

    reply = await model.reply(ModelRequest([HumanMessage("hi")], declared(["ls"])), lambda _: None)

    assert reply.usage_metadata == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    assert reply.response_metadata == {"model_name": "tiny (local, limited)", "finish_reason": "stop"}


async def test_a_runtime_error_is_a_model_error_and_there_is_no_other_model() -> None:
    model, _ = model_of(ModelError("it cannot be loaded"))

    with pytest.raises(ModelError, match="cannot be loaded"):
        await model.reply(ModelRequest([HumanMessage("hi")], []), lambda _: None)
    with pytest.raises(UsageError, match="Cannot switch to 'other'"):
        await model.switch("other")
    assert (model.name, await model.names(), model.label) == ("", (), "tiny (local, limited)")
    await model.close()


async def test_a_request_without_tools_is_answered_in_words_whatever_it_says() -> None:
    model, runtime = model_of("It was about lists.", commands_first=True)

    reply = await model.reply(ModelRequest([SystemMessage("sum up"), HumanMessage("list")], []), lambda _: None)

    assert (reply.text, [ask.schema for ask in runtime.asked]) == ("It was about lists.", [None])


async def test_without_a_prompt_the_model_is_not_asked() -> None:
    model, runtime = model_of()

    reply = await model.reply(ModelRequest([AIMessage("x")], []), lambda _: None)

    assert (reply.text, runtime.asked) == ("Nothing was asked.", [])


async def test_notices_reach_the_model_and_the_reply_and_a_file_change_continues() -> None:
    model, runtime = model_of(action("change_file", file_path="a.py"), "```\nx = 2\n```")
    ended = ("sh1: exit code 1  $ make",)
    tools = declared(["read_file", "write_file"])
    asked: list[BaseMessage] = [HumanMessage("let x be 2")]

    read = await model.reply(ModelRequest(asked, tools, ended), lambda _: None)
    (call,) = read.tool_calls
    asked += [read, answer(saying("1\tx = 1"), {}, str(call["id"]))]
    written = await model.reply(ModelRequest(asked, tools), lambda _: None)

    assert "sh1: exit code 1" in str(runtime.asked[0])
    assert read.text.endswith("Ended in the background:\n- sh1: exit code 1  $ make")
    assert [call["name"] for call in (*read.tool_calls, *written.tool_calls)] == ["read_file", "write_file"]
