from graph_agent.cli.commands_of_chat import COMMANDS, MODES, completions


def test_tab_offers_every_command_and_every_mode() -> None:
    assert completions() == [*(f"/{name}" for name in COMMANDS), *(f"/mode {mode}" for mode in MODES)]


def test_the_usage_of_a_command_begins_with_its_name() -> None:
    assert [name for name, command in COMMANDS.items() if command.usage.split()[0] != f"/{name}"] == []
