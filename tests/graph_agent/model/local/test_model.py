from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph_agent.errors import ModelError, UsageError
from graph_agent.model.local.model import (
    LocalModel,
    Step,
    actions_for,
    answer_prompt,
    change_notice,
    choice_prompt,
    extract_file,
    instructions,
    parse_action,
    plain_prompt,
    prompt_room,
    rewrite_prompt,
    schema_of,
    step_after,
)
from graph_agent.model.local.runtime import Completion
from graph_agent.model.offline.model import Answer
from graph_agent.model.offline.plan import CallResult, PlannedCall
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.scripted_runtime import ScriptedRuntime, action
from tests.graph_agent.model.offline.test_model import Files, Tool, answer, declared, failing, saying

GREEN = saying("[exit code 0]")


def model_of(
    *replies: str | Completion | Exception, commands_first: bool = False
) -> tuple[LocalModel, ScriptedRuntime]:
    runtime = ScriptedRuntime(list(replies))
    model = LocalModel(Path("models/tiny.gguf"), runtime, context=4096, commands_first=commands_first)
    return model, runtime


async def turn(
    model: LocalModel, prompt: str, tools: dict[str, Tool]
) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The calls of a turn, and the text it ends with."""
    messages: list[BaseMessage] = [SystemMessage("long instructions"), HumanMessage(prompt)]
    calls: list[tuple[str, dict[str, Any]]] = []
    while True:
        reply = await model.reply(ModelRequest(messages, declared(list(tools))), lambda _: None)
        messages.append(reply)
        if not reply.tool_calls:
            return calls, reply.text
        (call,) = reply.tool_calls
        calls.append((call["name"], call["args"]))
        messages.append(answer(tools[call["name"]], call["args"], str(call["id"])))


async def test_one_action_is_chosen_run_and_answered_in_words() -> None:
    model, runtime = model_of(action("bash", command="pytest"), "All is green.")

    turned = await turn(model, "do the tests pass?", {"bash": GREEN})

    assert turned == ([("bash", {"command": "pytest"})], "All is green.")
    assert [request.schema is None for request in runtime.asked] == [False, True]
    assert "long instructions" not in str(runtime.asked)


CHANGE_A = action("change_file", file_path="a.py")


@pytest.mark.parametrize(
    ("present", "replies", "calls", "content", "text"),
    [
        (
            "x = 1\ny = 2\n",
            [CHANGE_A, "```python\nx = 2\ny = 2\n```"],
            ["read_file", "write_file"],
            "x = 2\ny = 2\n",
            "Done. wrote it",
        ),
        ("x = 1\n", [CHANGE_A, "I would change x."], ["read_file"], "x = 1\n", "gave no new text for a.py"),
        ("x = 1\n", [CHANGE_A, "```\nx = 1\n```"], ["read_file"], "x = 1\n", "leave a.py as it is"),
        (
            "x = 1\n",
            [CHANGE_A, Completion("```\nx = 3", is_complete=False)],
            ["read_file"],
            "x = 1\n",
            "did not finish",
        ),
        ("x = 1\n" * 2_000, [CHANGE_A], ["read_file"], "x = 1\n" * 2_000, "a.py is too long"),
        (
            "x = 1\n",
            [action("write_file", file_path="a.py", content="new\n")],
            ["write_file", "read_file", "write_file"],
            "new\n",
            "Done. wrote it",
        ),
    ],
    ids=["changed", "no new text", "unchanged", "cut off", "too long", "overwritten"],
)
async def test_a_file_is_changed_by_reading_and_rewriting_it_or_not_at_all(
    present: str, replies: list[str | Completion], calls: list[str], content: str, text: str
) -> None:
    files = Files(a_py=present)
    model, runtime = model_of(*replies)

    made, said = await turn(model, "let x be 2", files.tools())

    assert ([tool for tool, _ in made], files.files, text in said) == (calls, {"a.py": content}, True)
    assert len(runtime.asked) == len(replies)


async def test_the_same_call_after_its_failure_ends_the_turn() -> None:
    again = action("read_file", file_path="no.py")
    model, runtime = model_of(again, again)

    calls, text = await turn(model, "explain no.py", {"read_file": failing("Error: there is no no.py")})

    assert calls == [("read_file", {"file_path": "no.py"})]
    assert ("asks for the same call again" in text, "there is no no.py" in text) == (True, True)
    assert "failed: Error: there is no no.py" in runtime.asked[1].messages[-1]["content"]


async def test_after_a_rejected_call_the_model_is_not_asked_again() -> None:
    model, runtime = model_of(action("bash", command="rm -rf src"))

    _, text = await turn(model, "clean up", {"bash": failing("Not run: the user rejected this call.")})

    assert (text, len(runtime.asked)) == ("Not run: the user rejected this call.", 1)


async def test_a_choice_that_was_cut_off_is_not_run() -> None:
    model, _ = model_of(Completion('{"tool": "bash", "command": "rm -rf', is_complete=False))

    calls, text = await turn(model, "clean up", {"bash": GREEN})

    assert (calls, "nothing was done" in text) == ([], True)


async def test_sure_commands_go_by_the_command_language_and_the_rest_to_the_model() -> None:
    tools = {"ls": saying("a.py"), "bash": GREEN}
    model, runtime = model_of(
        action("bash", command="pytest"), "Green.", action("reply", text="It is a list."), commands_first=True
    )

    listed, _ = await turn(model, "list the files, then run make test", tools)
    tested, _ = await turn(model, "run the tests", tools)
    talked, text = await turn(model, "what is a list?", tools)

    assert listed == [("ls", {"path": "."}), ("bash", {"command": "make test"})]
    assert (tested, talked, text) == ([("bash", {"command": "pytest"})], [], "It is a list.")
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


ALL = frozenset(("ls", "glob", "grep", "read_file", "write_file", "bash", "web_fetch"))


def taken(tool: str, result: str = "ok", said: str = "", *, bad: bool = False, **arguments: str) -> CallResult:
    return CallResult(result, bad, tool=tool, arguments=arguments, message=said)


def test_only_actions_whose_tools_are_offered_are_possible() -> None:
    names = {
        tools: [action.name for action in actions_for(tools)] for tools in (frozenset(("ls", "read_file")), ALL)
    }

    assert names == {
        frozenset(("ls", "read_file")): ["ls", "read_file", "reply"],
        ALL: ["ls", "glob", "grep", "read_file", "write_file", "change_file", "bash", "reply"],
    }


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ({"tool": "read_file", "file_path": "a"}, True),
        ({"tool": "reply", "text": ""}, True),
        ({"tool": "read_file"}, False),
        ({"tool": "read_file", "file_path": 1}, False),
        ({"tool": "read_file", "file_path": "a", "more": "b"}, False),
        ({"tool": "web_fetch", "url": "x"}, False),
        ({"tool": "ls", "file_path": "a"}, False),
    ],
)
def test_the_schema_accepts_one_complete_action_and_nothing_else(said: dict[str, object], fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(actions_for(ALL)))

    assert validator.is_valid(said) is fits


def test_only_a_complete_action_is_parsed() -> None:
    actions = actions_for(ALL)
    said = ['{"tool": "ls", "path": "."}', '{"tool": "ls"}', '{"tool": "no"}', "[1]", '{"tool": "ls", "pa', "7"]

    assert [parse_action(text, actions) for text in said] == [("ls", {"path": "."}), None, None, None, None, None]


def test_the_instructions_are_short_and_their_examples_possible() -> None:
    few, all_of_them = instructions(actions_for(frozenset(("ls",)))), instructions(actions_for(ALL))

    assert (len(all_of_them) < 1_500, "parse_args" in all_of_them, "parse_args" in few) == (True, True, False)


ACTIONS = actions_for(frozenset(("ls", "read_file")))


def test_the_choice_prompt_has_the_end_of_the_conversation_and_what_failed() -> None:
    earlier: list[BaseMessage] = [HumanMessage("one"), AIMessage("1"), HumanMessage("two"), AIMessage("2" * 900)]
    messages = [*earlier, HumanMessage("three"), AIMessage(""), HumanMessage("now")]
    failed = taken("ls", "no folder", bad=True, path="x")

    ask = choice_prompt(messages[6].text, messages[:6], [failed], ACTIONS)

    assert [message["role"] for message in ask.messages] == ["system", "user", "assistant", "user", "user"]
    assert [message["content"][:12] for message in ask.messages[1:4]] == ["two", "2" * 12, "three"]
    assert ask.messages[-1]["content"] == "now\n\nls {'path': 'x'} failed: no folder Choose another action."
    assert (len(ask.messages[2]["content"]) < 320, ask.schema is not None) == (True, True)


def test_the_answer_prompt_has_as_much_of_the_result_as_fits() -> None:
    ask = answer_prompt("why", taken("bash", "x" * 90_000), 4096)

    said = sum(len(message["content"]) for message in ask.messages)
    assert (prompt_room(4096, ask.max_tokens) * 0.9 < said < prompt_room(4096, ask.max_tokens) + 300) is True


def test_a_file_that_does_not_fit_twice_is_not_rewritten() -> None:
    short, long = rewrite_prompt("fix", "f", "x = 1\n", 4096), rewrite_prompt("fix", "f", "x = 1\n" * 1_500, 4096)

    assert short is not None
    assert (short.messages[-1]["content"], long) == ("File f:\n```\nx = 1\n```\n\nfix", None)


def test_the_new_text_is_between_the_backquotes() -> None:
    replies = ["```py\na\n  b\n```", "Sure:\n```\na\n```\nDone.", "``````", "a = 1", "```\n\n```"]

    assert [extract_file(reply) for reply in replies] == ["a\n  b\n", "a\n", None, None, ""]


def test_a_prompt_without_tools_is_cut_to_the_context() -> None:
    ask = plain_prompt([SystemMessage("s" * 90_000), HumanMessage("u" * 90_000)], 4096)

    lengths = [len(message["content"]) for message in ask.messages]
    assert (sum(lengths) < prompt_room(4096, ask.max_tokens) + 30, ask.schema) == (True, None)


UNREAD = "Error: 'f' exists and was not read in this conversation; read it with read_file first."


READ = taken("read_file", "     1\tx", file_path="f")
TO_CHANGE = taken("read_file", "     1\tx", change_notice("f"), file_path="f")
WRITE = taken("write_file", "Wrote f.", file_path="f", content="y")
TOO_EARLY = taken("write_file", UNREAD, bad=True, file_path="f", content="y")
MISSING = taken("read_file", "Error: no such file", bad=True, file_path="f")
OTHER = taken("read_file", "Error: no such file", bad=True, file_path="g")
MAKE = taken("bash", "[exit code 2]", bad=True, command="make")


@pytest.mark.parametrize(
    ("before", "following"),
    [
        ([], "choose"),
        ([READ], "answer"),
        ([TO_CHANGE], "rewrite"),
        ([TO_CHANGE, WRITE], Answer("Done. Wrote f.")),
        ([TOO_EARLY], PlannedCall("read_file", {"file_path": "f"})),
        ([TOO_EARLY, READ], PlannedCall("write_file", {"file_path": "f", "content": "y"})),
        ([TOO_EARLY, READ, TOO_EARLY], Answer(f"Not done. {UNREAD}")),
        ([MAKE], "answer"),
        ([MISSING], "choose"),
        ([MISSING, OTHER], "choose"),
        ([MISSING, MISSING], Answer("Not done. Error: no such file")),
        ([MISSING, OTHER, MISSING], Answer("Not done. Error: no such file")),
        ([taken("bash", "Not run: refused", bad=True, command="x")], Answer("Not run: refused")),
    ],
)
def test_each_history_of_a_turn_has_one_next_step(before: list[CallResult], following: Step) -> None:
    assert step_after(before) == following
