"""What a client can choose from in a session: permission modes, models, slash commands."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.app.chat_input import UserCommands, user_commands

__all__ = ["OWN_COMMANDS", "Command", "available_commands", "config_options", "mode_state", "parse_command"]

_MODES: Mapping[str, tuple[str, str]] = {
    "default": ("Default", "Side effects need approval."),
    "acceptEdits": ("Accept edits", "Edits in the workspace run unasked; the rest needs approval."),
    "plan": ("Plan", "Only reads; the model presents a plan."),
    "auto": ("Auto", "A model reviews what would be asked, and asks you where it is unsure."),
    "dontAsk": ("Do not ask", "What would need approval is denied."),
}
_BYPASS = ("Bypass permissions", "Runs everything without approval, except what a rule denies.")
_BYPASS_ID = "bypassPermissions"
"""Can only be chosen when the agent is started, so it is offered only where it was."""

_COMMAND = re.compile(r"/([\w.:-]+)(?:\s+(.*))?", re.DOTALL)


class Command(NamedTuple):
    """One slash command of the agent itself."""

    does: str
    hint: str = ""


OWN_COMMANDS: Mapping[str, Command] = {
    "compact": Command("compact the context; the history is kept"),
    "retry": Command("ask again after an error, a limit or a stop"),
    "diff": Command("show what this thread changed in files"),
    "mode": Command("set the permission mode", "default, acceptEdits, plan, auto or dontAsk"),
    "model": Command("switch to a model", "name of the model"),
}


def mode_state(current: str) -> Mapping[str, Any]:
    """The permission modes, and which one applies."""
    offered = {**_MODES, _BYPASS_ID: _BYPASS} if current == _BYPASS_ID else _MODES
    modes = [{"id": key, "name": name, "description": does} for key, (name, does) in offered.items()]
    return {"currentModeId": current, "availableModes": modes}


def config_options(mode: str, model: str, models: Sequence[str]) -> list[Mapping[str, Any]]:
    """Mode and model as options of a session, for clients that show those instead of modes."""
    state = mode_state(mode)
    modes = [
        {"value": one["id"], "name": one["name"], "description": one["description"]}
        for one in state["availableModes"]
    ]
    names = dict.fromkeys((model, *models))
    return [
        _select("mode", "Permission mode", mode, modes),
        _select("model", "Model", model, [{"value": name, "name": name or "Choose a model"} for name in names]),
    ]


def _select(key: str, name: str, current: str, options: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {
        "type": "select",
        "id": key,
        "category": key,
        "name": name,
        "currentValue": current,
        "options": options,
    }


def parse_command(text: str) -> tuple[str, str] | None:
    """Name and arguments of a message that begins with a slash and a name; None for any other text."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1], (found[2] or "").strip()) if found else None


def available_commands(workspace: Path, *, once: bool) -> tuple[UserCommands, list[Mapping[str, Any]]]:
    """The user's own commands, and those with the agent's as the client lists them.

    Args:
        once: whether the project is trusted in this process, whatever the user decided.
    """
    found = user_commands(workspace, once=once)
    listed = [_described(name, command.does, command.hint) for name, command in OWN_COMMANDS.items()]
    listed += [
        _described(name, command.does or f"from {command.place}", command.hint or "arguments")
        for name, command in found.known.items()
        if name not in OWN_COMMANDS
    ]
    return found, listed


def _described(name: str, does: str, hint: str) -> Mapping[str, Any]:
    return {"name": name, "description": does, **({"input": {"hint": hint}} if hint else {})}
