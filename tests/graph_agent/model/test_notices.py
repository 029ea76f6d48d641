from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.model.notices import append_notices, messages_with_notices, reply_with_notices
from graph_agent.ports import Delta, ModelRequest

GO = HumanMessage("go")


def test_news_stand_behind_the_newest_message_and_the_stored_one_stays_as_it_is() -> None:
    stored = [GO, ToolMessage("done", tool_call_id="c1")]

    sent = messages_with_notices(ModelRequest(stored, (), ("sh1: exit code 1", "sh2: exit code 0")))

    assert [message.text.partition("\n\n[From the program")[0] for message in sent] == ["go", "done"]
    assert "\n- sh1: exit code 1\n- sh2: exit code 0\n" in sent[-1].text
    assert [message.text for message in stored] == ["go", "done"]


def test_without_news_messages_text_and_reply_are_what_they_were() -> None:
    request = ModelRequest([GO, AIMessage("ok")], ())
    reply = AIMessage("ok")

    assert messages_with_notices(request) is request.messages
    assert append_notices("go", request) == "go"
    assert reply_with_notices(reply, request, lambda _: None, chinese=False) is reply


def test_a_reply_written_here_says_the_news_and_what_is_shown_is_what_it_says() -> None:
    request, shown = ModelRequest([GO], (), ("sh1: exit code 1",)), list[Delta]()

    said = reply_with_notices(AIMessage("ok"), request, shown.append, chinese=False)
    alone = reply_with_notices(AIMessage(""), request, shown.append, chinese=True)

    assert (said.text, alone.text) == (
        "ok\n\nEnded in the background:\n- sh1: exit code 1",
        "后台命令已结束：\n- sh1: exit code 1",
    )
    assert "ok" + "".join(delta.text for delta in shown) == said.text + alone.text
