"""What became of a background shell, on one line."""

from graph_agent.events import ShellEnded, ShellKept

__all__ = ["shell_line"]

_COMMAND_CHARS = 80


def shell_line(event: ShellEnded | ShellKept) -> str:
    """The line, with the command last."""
    first, *more = event.command.strip().split("\n")
    command = first[:_COMMAND_CHARS] + ("…" if more or len(first) > _COMMAND_CHARS else "")
    state = event.state if isinstance(event, ShellEnded) else "goes on"
    return f"background shell {event.shell_id}: {state}  $ {command}"
