"""What a call touches, as tools declare it. Nothing is resolved or judged here."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["CommandTarget", "HostTarget", "PathTarget", "Target"]


@dataclass(frozen=True)
class PathTarget:
    """A file or folder, as the arguments spell it."""

    text: str
    access: Literal["read", "write"] = "read"


@dataclass(frozen=True)
class HostTarget:
    """A network host, with its port where it is not the usual one."""

    text: str


@dataclass(frozen=True)
class CommandTarget:
    """A shell command."""

    text: str
    working_directory: str = ""
    is_bash: bool = True
    """Written for bash; anything else cannot be read."""


Target = PathTarget | HostTarget | CommandTarget
