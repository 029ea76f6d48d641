from graph_agent.ports import ModelRequest


def test_a_request_knows_the_names_of_its_tools() -> None:
    declared = [{"type": "function", "function": {"name": name}} for name in ("ls", "bash")]

    assert ModelRequest([], declared).tool_names == {"ls", "bash"}
