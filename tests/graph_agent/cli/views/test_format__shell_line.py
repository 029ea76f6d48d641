from graph_agent.cli.views.format import format_shell
from graph_agent.events import ShellEnded, ShellKept


def test_a_line_names_the_shell_its_state_and_the_first_line_of_its_command() -> None:
    lines = [
        format_shell(ShellEnded("sh1", "npm run dev", "exit code 1")),
        format_shell(ShellKept("sh2", "for i in 1 2\ndo echo $i; done")),
        format_shell(ShellKept("sh3", "x" * 200)),
    ]

    assert lines == [
        "background shell sh1: exit code 1  $ npm run dev",
        "background shell sh2: goes on  $ for i in 1 2…",
        f"background shell sh3: goes on  $ {'x' * 80}…",
    ]
