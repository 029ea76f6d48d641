"""Which permission mode a living session may take. Judges no call."""

from typing import get_args

from graph_agent.config.settings import Mode
from graph_agent.errors import UsageError

__all__ = ["chosen_mode"]


def chosen_mode(mode: str) -> str:
    """The mode, where it is one that may be chosen now.

    Raises:
        UsageError: it is none, or one that only the start of the program may choose.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"there is no mode {mode!r}; choose one of {', '.join(get_args(Mode))}")
    if mode == "bypassPermissions":
        raise UsageError("bypassPermissions can only be chosen when the program starts: --mode bypassPermissions")
    return mode
