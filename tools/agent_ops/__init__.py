"""Tools for the agent's own work: memory, plan, questions, sub-agents, skills. Each is loaded on demand."""

from typing import TYPE_CHECKING

from tools import load_on_demand

if TYPE_CHECKING:
    from tools.agent_ops.ask_user import AskUserTool
    from tools.agent_ops.completion import AttemptCompletionTool
    from tools.agent_ops.memory import SaveMemoryTool
    from tools.agent_ops.new_task import NewTaskTool
    from tools.agent_ops.present_plan import PresentPlanTool
    from tools.agent_ops.skill import SkillTool
    from tools.agent_ops.todo import TodoReadTool, TodoWriteTool
    from tools.agent_ops.tool_search import ToolSearchTool

__all__ = [
    "AskUserTool",
    "AttemptCompletionTool",
    "NewTaskTool",
    "PresentPlanTool",
    "SaveMemoryTool",
    "SkillTool",
    "TodoReadTool",
    "TodoWriteTool",
    "ToolSearchTool",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    __getattr__ = load_on_demand(
        __name__,
        {
            "AskUserTool": "ask_user",
            "AttemptCompletionTool": "completion",
            "NewTaskTool": "new_task",
            "PresentPlanTool": "present_plan",
            "SaveMemoryTool": "memory",
            "SkillTool": "skill",
            "TodoReadTool": "todo",
            "TodoWriteTool": "todo",
            "ToolSearchTool": "tool_search",
        },
    )
