import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.calls import ToolCallInfo
from graph_agent.errors import InvalidHistory
from graph_agent.graph.history import newest_calls, require_valid, tool_message_text


def asking(*call_ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"id": call_id, "name": "ls", "args": {}} for call_id in call_ids])


def answer(call_id: str) -> ToolMessage:
    return ToolMessage("ok", tool_call_id=call_id)


def test_a_history_with_every_call_answered_in_order_is_valid() -> None:
    require_valid(
        [
            SystemMessage("s"),
            HumanMessage("hi"),
            asking("a", "b"),
            answer("a"),
            answer("b"),
            AIMessage("done"),
            HumanMessage("more"),
            HumanMessage("and more"),
        ]
    )


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([asking("a")], "have no answers"),
        ([asking("a"), HumanMessage("hi")], "before the calls"),
        ([asking("a", "b"), answer("b"), answer("a")], "out of turn"),
        ([asking("a"), answer("a"), answer("a")], "out of turn"),
        ([answer("a")], "out of turn"),
        ([asking("a"), answer("a"), asking("a"), answer("a")], "repeats"),
        ([asking("a", "a"), answer("a"), answer("a")], "repeats"),
        ([AIMessage("")], "neither text nor calls"),
    ],
)
def test_a_history_that_a_strict_server_would_refuse_is_refused_here_first(
    messages: list[AnyMessage], why: str
) -> None:
    with pytest.raises(InvalidHistory, match=why):
        require_valid(messages)


def test_calls_of_the_newest_message_carry_the_complaint_about_their_arguments() -> None:
    message = asking("a", "b")
    message.response_metadata = {"unusable_arguments": {"1": "not JSON"}}

    assert newest_calls([message]) == [("a", "ls", {}, ""), ("b", "ls", {}, "not JSON")]


def call(**fields: object) -> ToolCallInfo:
    base: ToolCallInfo = {
        "call_id": "c",
        "tool_name": "bash",
        "arguments": {"command": "ls"},
        "status": "success",
        "result": None,
        "error_msg": None,
    }
    return {**base, **fields}  # type: ignore[typeddict-item]  # the fields are those of the record


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (call(result="out"), "out"),
        (call(result=""), "(no output)"),
        (call(result="out", edited=True), "The user changed the arguments to {'command': 'ls'}.\nout"),
        (call(status="error", result="some", error_msg="exit code 1"), "some\nError: exit code 1"),
        (call(status="error", error_msg="no such tool"), "Error: no such tool"),
        (
            call(status="cancelled", decision="deny", reason="no network"),
            "Not run: denied by policy. Do not repeat it. no network",
        ),
        (
            call(status="cancelled", decision="reject", reason="not now"),
            "Not run: the user rejected this call. Do not repeat it. The user said: not now",
        ),
        (
            call(status="cancelled", decision="reject", reason=""),
            "Not run: the user rejected this call. Do not repeat it.",
        ),
        (
            call(status="cancelled", decision="stop", reason="stopped by user", started=False),
            "Cancelled: stopped by user. It never started.",
        ),
        (
            call(status="cancelled", decision="cancel", reason="outcome_unknown", started=True),
            "Cancelled by the user. Its outcome is unknown: check its effect before you repeat it.",
        ),
    ],
)
def test_the_model_learns_what_happened_and_what_is_not_known(record: ToolCallInfo, text: str) -> None:
    assert tool_message_text(record) == text
