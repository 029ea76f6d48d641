from graph_agent.cli.chat.command_table import COMMANDS


def test_the_usage_of_a_command_begins_with_its_name() -> None:
    assert [name for name, command in COMMANDS.items() if command.usage.split()[0] != f"/{name}"] == []
