"""Tools on files and folders, each loaded when it is asked for."""

from typing import TYPE_CHECKING

from tools import load_on_demand

if TYPE_CHECKING:
    from tools.file_ops.edit_file import EditFileTool
    from tools.file_ops.glob import GlobTool
    from tools.file_ops.grep import GrepTool
    from tools.file_ops.ls import LsTool
    from tools.file_ops.read_file import ReadFileTool
    from tools.file_ops.write_file import WriteFileTool

__all__ = [
    "EditFileTool",
    "GlobTool",
    "GrepTool",
    "LsTool",
    "ReadFileTool",
    "WriteFileTool",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    __getattr__ = load_on_demand(
        __name__,
        {
            "EditFileTool": "edit_file",
            "GlobTool": "glob",
            "GrepTool": "grep",
            "LsTool": "ls",
            "ReadFileTool": "read_file",
            "WriteFileTool": "write_file",
        },
    )
