"""What a person typed as the message it is: a slash command of the user's own stands for one. Sends nothing."""

from pathlib import Path

from graph_agent.errors import UsageError

__all__ = ["message_typed"]


def message_typed(text: str, workspace: Path, *, trusted_once: bool) -> str:
    """The message that a prompt stands for: itself, or what a line `/NAME ...` of the user's own means.

    Raises:
        UsageError: that command stands in a folder that is not trusted, or is empty.
    """
    if not text.startswith("/") or "\n" in text.strip():
        return text
    from graph_agent.app.user_commands import user_commands  # with all that reads a project's files

    name, _, arguments = text.strip()[1:].partition(" ")
    message = user_commands(workspace, once=trusted_once).message(name, arguments.strip())
    if message == "":
        raise UsageError(f"/{name} stands for an empty message; there is nothing to do")
    return text if message is None else message
