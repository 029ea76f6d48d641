from graph_agent.ports import Scope
from graph_agent.ports.toolbox import NO_MENTION_EXPANSION, ExpandedMessage


async def test_where_nothing_is_read_a_message_is_its_words() -> None:
    assert await NO_MENTION_EXPANSION.expand("@src/a.py", Scope("t", "default")) == ExpandedMessage("@src/a.py")
