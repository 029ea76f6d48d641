from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.model.noting import noted_messages
from graph_agent.ports import ModelRequest


def test_a_note_stands_behind_the_newest_message_and_the_stored_one_stays_as_it_is() -> None:
    stored = [HumanMessage("go"), ToolMessage("done", tool_call_id="c1")]

    sent = noted_messages(ModelRequest(stored, (), "news"))

    assert [message.text for message in sent] == ["go", "done\n\nnews"]
    assert [message.text for message in stored] == ["go", "done"]


def test_without_a_note_the_messages_are_sent_as_they_are() -> None:
    stored = [HumanMessage("go"), AIMessage("ok")]

    assert noted_messages(ModelRequest(stored, ())) is stored
