import jsonschema
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph_agent.model.local.model import (
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
from graph_agent.model.offline.model import Answer
from graph_agent.model.offline.plan import CallResult, PlannedCall

ALL = frozenset(("ls", "glob", "grep", "read_file", "write_file", "bash", "web_fetch"))


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


def taken(tool: str, result: str = "ok", said: str = "", *, bad: bool = False, **arguments: str) -> CallResult:
    return CallResult(result, bad, tool=tool, arguments=arguments, message=said)


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
