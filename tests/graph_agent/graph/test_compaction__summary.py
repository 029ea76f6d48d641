from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph_agent.calls import REPLACES
from graph_agent.graph.compaction import Facts, outline, requests_in, summary_message, summary_request
from graph_agent.ports.usage import estimate_request_tokens

TALK: list[AnyMessage] = [
    HumanMessage("rename the port", id="h1"),
    AIMessage("I look.", id="a1", tool_calls=[{"id": "c", "name": "grep", "args": {"pattern": "port"}}]),
    ToolMessage("a.py:1: port = 80\nb.py:2: port", tool_call_id="c", id="t1", name="grep"),
    AIMessage("It is in two files.", id="a2"),
]
NOTHING = Facts((), (), ())


def test_an_outline_says_what_was_called_and_how_it_ended() -> None:
    assert outline(TALK) == (
        "- the model: I look.\n"
        "- grep(pattern='port'): a.py:1: port = 80 b.py:2: port\n"
        "- the model: It is in two files."
    )


def test_a_summary_of_a_summary_takes_over_requests_and_what_was_done() -> None:
    first = summary_message(TALK, outline(TALK), Facts(requests_in(TALK), (), ()), 2_000)
    later: list[AnyMessage] = [first, HumanMessage("and test it", id="h2"), AIMessage("Done.", id="a3")]

    assert requests_in(later) == ("rename the port", "and test it")
    assert outline(later) == f"{outline(TALK)}\n- the model: Done."


def test_a_summary_replaces_what_it_is_of_and_holds_the_facts() -> None:
    facts = Facts(("rename the port",), ["/w/a.py"], [{"content": "test it", "status": "pending"}])

    message = summary_message(TALK, "They chose 8080.", facts, 2_000)

    head, *parts = message.text.split("\n\n")
    assert head.startswith("[Summary of the conversation until here, written by the program, not by the user.")
    assert parts == [
        "The user asked for, in the user's own words:\n- rename the port",
        "What was done:\nThey chose 8080.",
        "Files that calls wrote:\n- /w/a.py",
        "The plan:\n- [pending] test it",
    ]
    assert message.response_metadata[REPLACES] == ["h1", "a1", "t1", "a2"]


def test_a_summary_stays_within_its_length_however_much_there_is_to_say() -> None:
    facts = Facts(tuple(f"request {number} " * 30 for number in range(40)), [f"/w/{n}.py" for n in range(999)], ())

    message = summary_message(TALK, "done " * 9_000, facts, 1_000)

    assert 500 < estimate_request_tokens([message]) < 1_300


def test_what_is_asked_fits_the_room_and_keeps_beginning_and_end() -> None:
    talk: list[AnyMessage] = [HumanMessage(f"message {number} " * 200, id=f"h{number}") for number in range(50)]

    asked = summary_request(talk, 2_000, 300)

    assert estimate_request_tokens(asked) < 2_600
    assert ("message 0 " in asked[1].text, "message 49 " in asked[1].text) == (True, True)


def test_lone_surrogates_reach_neither_request_nor_summary() -> None:
    talk: list[AnyMessage] = [HumanMessage("odd \udc80 word", id="h")]

    (asked,) = summary_request(talk, 1_000, 100)[1:]
    message = summary_message(talk, "told \udc80", Facts(requests_in(talk), (), ()), 500)

    assert ("odd ? word" in asked.text, "odd ? word" in message.text, "told ?" in message.text) == (True,) * 3


def test_nothing_to_tell_leaves_the_headline_alone() -> None:
    assert "\n" not in summary_message(TALK, "", NOTHING, 500).text
