"""The powershell tool, offered where PowerShell is installed. Its commands cannot be parsed before they run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from tools.base import (
    CommandTarget,
    Target,
    ToolDescription,
    ToolErrorType,
    ToolExample,
)
from tools.paths import PathRefused
from tools.programs import find_program
from tools.shell_ops.bash import BashArgs, BashTool

__all__ = ["PowershellArgs", "PowershellTool", "find_powershell"]

_OPTIONS = ("-NoLogo", "-NoProfile", "-NonInteractive", "-Command")


class PowershellArgs(BashArgs):
    command: str = Field(description="the command, as PowerShell reads it")


class PowershellTool(BashTool):
    """Runs a command with PowerShell in the workspace."""

    name = "powershell"
    description = ToolDescription(
        short="Run a command with PowerShell in the workspace.",
        long="It runs as with bash: without a terminal, without input, with the same limits.",
        usage_notes=("With background=true it keeps running in the background.",),
        examples=(ToolExample({"command": "Get-ChildItem -Recurse *.cs"}),),
        important=("A changed working directory is not kept.",),
    )
    tags = ("shell", "execute")
    args_schema = PowershellArgs

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The command, which is not for bash."""
        return [CommandTarget(str(args["command"]), str(args.get("working_directory") or ""), is_bash=False)]

    def shell_words(self, workspace: Path) -> tuple[str, ...]:
        """PowerShell, which may have been removed after the tool was offered."""
        program = find_powershell(workspace)
        if program is None:
            raise PathRefused(ToolErrorType.NOT_FOUND, "PowerShell (pwsh) is not installed here; use bash.")
        return (program, *_OPTIONS)

    def display_call(self, args: Mapping[str, Any]) -> str:
        """The first line, with the prompt of its shell."""
        return super().display_call(args).replace("$ ", "PS> ", 1)


def find_powershell(workspace: Path) -> str | None:
    """Its path; None if it is not installed, or only where commands may write."""
    return find_program("pwsh", outside=(workspace.resolve(),))
