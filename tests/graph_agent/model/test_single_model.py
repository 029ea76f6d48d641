import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.errors import UsageError
from graph_agent.model.single_model import SingleModel, append_notices, messages_with_notices, reply_with_notices
from graph_agent.ports import Delta, ModelRequest

GO = HumanMessage("go")


async def test_a_single_model_cannot_be_switched_and_says_why() -> None:
    model = SingleModel("it is the only one.")

    assert (model.name, model.chosen, await model.names()) == ("", {}, ())
    with pytest.raises(UsageError, match=r"^Cannot switch to 'other': it is the only one\.$"):
        await model.switch("other")


def test_notices_are_sent_behind_the_newest_message_and_the_stored_one_stays_as_it_is() -> None:
    stored = [GO, ToolMessage("done", tool_call_id="c1")]

    sent = messages_with_notices(ModelRequest(stored, (), ("sh1: exit code 1", "sh2: exit code 0")))

    assert [message.text.partition("\n\n[From the program")[0] for message in sent] == ["go", "done"]
    assert "\n- sh1: exit code 1\n- sh2: exit code 0\n" in sent[-1].text
    assert [message.text for message in stored] == ["go", "done"]


def test_without_notices_messages_text_and_reply_stay_the_same() -> None:
    request, reply = ModelRequest([GO, AIMessage("ok")], ()), AIMessage("ok")

    assert messages_with_notices(request) is request.messages
    assert append_notices("go", request) == "go"
    assert reply_with_notices(reply, request, lambda _: None, chinese=False) is reply


def test_a_reply_made_in_this_process_ends_with_the_notices_and_streams_them() -> None:
    request, shown = ModelRequest([GO], (), ("sh1: exit code 1",)), list[Delta]()

    english = reply_with_notices(AIMessage("ok"), request, shown.append, chinese=False)
    chinese = reply_with_notices(AIMessage(""), request, shown.append, chinese=True)

    assert (english.text, chinese.text) == (
        "ok\n\nEnded in the background:\n- sh1: exit code 1",
        "后台命令已结束：\n- sh1: exit code 1",
    )
    assert "ok" + "".join(delta.text for delta in shown) == english.text + chinese.text
