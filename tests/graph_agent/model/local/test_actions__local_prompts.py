from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph_agent.model.local.actions import (
    Taken,
    actions_for,
    answering,
    choosing,
    new_text,
    plainly,
    rewriting,
    room_of,
)

ACTIONS = actions_for(frozenset(("ls", "read_file")))


def test_the_choice_is_asked_with_the_end_of_the_conversation_in_short_and_what_went_wrong() -> None:
    earlier: list[BaseMessage] = [HumanMessage("one"), AIMessage("1"), HumanMessage("two"), AIMessage("2" * 900)]
    messages = [*earlier, HumanMessage("three"), AIMessage(""), HumanMessage("now")]
    failed = Taken("ls", {"path": "x"}, "", "no folder", is_error=True)

    ask = choosing(messages[6].text, messages[:6], [failed], ACTIONS)

    assert [message["role"] for message in ask.messages] == ["system", "user", "assistant", "user", "user"]
    assert [message["content"][:12] for message in ask.messages[1:4]] == ["two", "2" * 12, "three"]
    assert ask.messages[-1]["content"] == "now\n\nls {'path': 'x'} failed: no folder Choose another action."
    assert (len(ask.messages[2]["content"]) < 320, ask.schema is not None) == (True, True)


def test_an_answer_is_asked_with_as_much_of_the_result_as_fits() -> None:
    ask = answering("why", Taken("bash", {}, "", "x" * 90_000, is_error=False), 4096)

    said = sum(len(message["content"]) for message in ask.messages)
    assert (room_of(4096, ask.max_tokens) * 0.9 < said < room_of(4096, ask.max_tokens) + 300) is True


def test_a_file_that_does_not_fit_twice_is_not_asked_for() -> None:
    short, long = rewriting("fix", "f", "x = 1\n", 4096), rewriting("fix", "f", "x = 1\n" * 1_500, 4096)

    assert short is not None
    assert (short.messages[-1]["content"], long) == ("File f:\n```\nx = 1\n```\n\nfix", None)


def test_the_new_text_is_what_stands_between_the_backquotes() -> None:
    replies = ["```py\na\n  b\n```", "Sure:\n```\na\n```\nDone.", "``````", "a = 1", "```\n\n```"]

    assert [new_text(reply) for reply in replies] == ["a\n  b\n", "a\n", None, None, ""]


def test_what_is_asked_without_tools_is_cut_to_the_context() -> None:
    ask = plainly([SystemMessage("s" * 90_000), HumanMessage("u" * 90_000)], 4096)

    lengths = [len(message["content"]) for message in ask.messages]
    assert (sum(lengths) < room_of(4096, ask.max_tokens) + 30, ask.schema) == (True, None)
