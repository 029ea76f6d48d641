from typing import Any

import typer

from graph_agent.cli.main import LazyCommands, LazyGroup, app, single_command

_MADE: list[str] = []


def _greet(name: str = "you") -> None:
    """Say hello. Then leave."""


class _Noted(typer.core.TyperCommand):
    def __init__(self, *names: Any, **settings: Any) -> None:
        _MADE.append(settings["name"])
        super().__init__(*names, **settings)


def test_a_command_is_made_once_and_only_when_it_is_asked_for() -> None:
    _MADE.clear()
    commands = LazyCommands({"greet": single_command(_greet, _Noted), "meet": single_command(_greet, _Noted)})

    before = (list(commands), len(commands), list(_MADE))
    first, second = commands["greet"], commands.get("greet")

    assert before == (["greet", "meet"], 2, [])
    assert (first is second, first.name, len(_MADE)) == (True, "greet", 1)
    assert commands.get("leave") is None


def test_the_list_of_commands_in_a_help_is_that_of_made_ones() -> None:
    program: Any = typer.main.get_command(app)
    assert isinstance(program, LazyGroup)

    made = {name: command.get_short_help_str() for name, command in program.commands.items()}

    assert {name: one.get_short_help_str() for name, one in program.commands.outlines().items()} == made
