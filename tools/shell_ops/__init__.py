"""Tools that run commands. Each is loaded when it is asked for."""

from typing import TYPE_CHECKING

from tools import load_on_demand

if TYPE_CHECKING:
    from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
    from tools.shell_ops.bash import BashTool
    from tools.shell_ops.powershell import PowershellTool

__all__ = [
    "BashKillTool",
    "BashListTool",
    "BashOutputTool",
    "BashTool",
    "PowershellTool",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    __getattr__ = load_on_demand(
        __name__,
        {
            "BashKillTool": "background_tools",
            "BashListTool": "background_tools",
            "BashOutputTool": "background_tools",
            "BashTool": "bash",
            "PowershellTool": "powershell",
        },
    )
