"""The risk of a tool: what this product assumes, whatever the tool declares."""

from collections.abc import Mapping
from typing import Literal

__all__ = ["DEFAULT_TOOL_RISK", "DEFAULT_UNKNOWN_RISK", "Risk", "risk_of"]

Risk = Literal["low", "medium", "high"]

DEFAULT_TOOL_RISK: dict[str, str] = {
    "read_file": "low",
    "write_file": "medium",
    "edit_file": "medium",
    "ls": "low",
    "glob": "low",
    "grep": "low",
    "bash": "high",
    "powershell": "high",
    "bash_output": "low",
    "bash_list": "low",
    "bash_kill": "low",
    "web_fetch": "medium",
    "web_search": "medium",
    "save_memory": "low",
    "todo_write": "low",
    "todo_read": "low",
    "ask_user": "low",
    "new_task": "low",
    "attempt_completion": "low",
    "tool_search": "low",
    "skill": "low",
}

DEFAULT_UNKNOWN_RISK = "medium"
"""Risk of an unknown tool, and the least risk that a third-party tool can declare."""

_ORDER: tuple[Risk, ...] = ("low", "medium", "high")


def risk_of(
    tool_name: str, declared: str | None, *, is_own: bool, settings: Mapping[str, str] | None = None
) -> Risk:
    """The risk of a call: the user's setting, else that of the table, else the one the tool declares.

    The table and a low declaration count for our own tools only; a third-party tool has at least medium risk, and
    so has a tool that declares none.
    """
    if settings and tool_name in settings:
        return _known(settings[tool_name])
    if is_own and tool_name in DEFAULT_TOOL_RISK:
        return _known(DEFAULT_TOOL_RISK[tool_name])
    if declared is None:
        return _known(DEFAULT_UNKNOWN_RISK)
    if is_own:
        return _known(declared)
    return max(_known(declared), _known(DEFAULT_UNKNOWN_RISK), key=_ORDER.index)


def _known(risk: str) -> Risk:
    return next((known for known in _ORDER if known == risk), "medium")
