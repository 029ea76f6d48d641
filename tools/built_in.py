"""The tools that come with the program; a new one is registered in `create_default_tools`."""

from collections.abc import Sequence
from pathlib import Path

from tools.agent_ops.ask_user import AskUserTool
from tools.agent_ops.completion import AttemptCompletionTool
from tools.agent_ops.memory import SaveMemoryTool
from tools.agent_ops.new_task import NewTaskTool, SubAgentPort
from tools.agent_ops.present_plan import PresentPlanTool
from tools.agent_ops.skill import Skill, SkillTool
from tools.agent_ops.todo import TodoReadTool, TodoWriteTool
from tools.base import BaseTool, MemoryFileStates
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.glob import GlobTool
from tools.file_ops.grep import GrepTool
from tools.file_ops.ls import LsTool
from tools.file_ops.read_file import ReadFileTool
from tools.file_ops.write_file import WriteFileTool
from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
from tools.shell_ops.bash import BashTool
from tools.shell_ops.powershell import PowershellTool, find_powershell
from tools.web_ops.web_fetch import WebFetchTool
from tools.web_ops.web_search import SearchProvider, WebSearchTool

__all__ = ["create_default_tools"]


def create_default_tools(
    *,
    workspace: str | Path,
    roots: Sequence[str | Path] = (),
    memory_file: Path | None = None,
    search: SearchProvider | None = None,
    sub_agents: SubAgentPort | None = None,
    skills: Sequence[Skill] = (),
) -> list[BaseTool]:
    """All built-in tools. Used without a context, they share the record of which files were read, keep inside the
    workspace and the roots, and run no command that is refused in every mode.

    Args:
        workspace: where they work.
        roots: further folders in which they may read and write.
        memory_file: where save_memory writes; None: the user's usual context file.
        search: the provider for web_search; without one, that tool is left out.
        sub_agents: runs the tasks of new_task; without it, such calls fail.
        skills: offered by the skill tool; without any, that tool is left out.
    """
    tools: list[BaseTool] = [
        ReadFileTool(workspace=workspace),
        WriteFileTool(workspace=workspace),
        EditFileTool(workspace=workspace),
        LsTool(workspace=workspace),
        GlobTool(workspace=workspace),
        GrepTool(workspace=workspace),
        BashTool(workspace=workspace),
        BashOutputTool(workspace=workspace),
        BashListTool(workspace=workspace),
        BashKillTool(workspace=workspace),
        WebFetchTool(workspace=workspace),
        TodoWriteTool(workspace=workspace),
        TodoReadTool(workspace=workspace),
        SaveMemoryTool(workspace=workspace, memory_file=memory_file),
        *([WebSearchTool(workspace=workspace, provider=search)] if search else []),
        AskUserTool(workspace=workspace),
        PresentPlanTool(workspace=workspace),
        NewTaskTool(workspace=workspace, sub_agents=sub_agents),
        AttemptCompletionTool(workspace=workspace),
        *([SkillTool(skills, workspace=workspace)] if skills else []),
        *([PowershellTool(workspace=workspace)] if find_powershell(Path(workspace)) else []),
    ]
    shared = MemoryFileStates()
    for tool in tools:
        tool.file_states, tool.roots = shared, tuple(roots)
    return tools
