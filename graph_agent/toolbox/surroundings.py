"""What a tool is given to work with: the context of each use, made from the thread's scope and the ports."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from graph_agent.calls import ToolCallInfo, process_mark
from graph_agent.ports import Scope
from graph_agent.toolbox.adapters import RecordedProcesses, StoredBlobs, progress_in_words
from graph_agent.toolbox.hosts import host_leave
from graph_agent.toolbox.places import RuleNames, Setting, names_in_rules, other_names
from graph_agent.toolbox.world import ToolboxPorts
from policy import hides_files, may_read
from tools.context import Limits, Progress, ToolContext, any_path

__all__ = ["Surroundings"]


class Surroundings:
    """Makes contexts; what all of them share is made once."""

    def __init__(self, setting: Setting, ports: ToolboxPorts, limits: Limits) -> None:
        self.setting = setting
        self.limits = limits
        self.blobs = StoredBlobs(ports.blobs, ports.scrub)
        self._ports = ports

    def of_thread(self, scope: Scope) -> ToolContext:
        """What every use of a tool in the thread has in common; without the means to have an effect."""
        return ToolContext(
            self.setting.workspace,
            roots=self.setting.roots,
            thread_id=scope.thread_id,
            cwd=Path(scope.cwd) if scope.cwd else None,
            file_states=self._ports.file_states,
            blobs=self.blobs,
            limits=self.limits,
        )

    def of_call(self, call: ToolCallInfo, scope: Scope) -> ToolContext:
        """What one attempt of a call runs with."""
        return replace(
            self.of_thread(scope),
            call_id=call["call_id"],
            attempt=call.get("attempt", 1),
            mark=process_mark(call.get("run_token", ""), call["call_id"], call.get("attempt", 1)),
            todo=scope.todo,
            shown=scope.shown,
            answer=call.get("answer"),
            processes=RecordedProcesses(self._ports.record_process),
            progress=lambda progress: self._report(call["call_id"], progress),
            sandbox=None if call.get("outside_sandbox") else self._ports.sandbox,
            may_read=self._may_read() if hides_files(self.setting.policy.rules) else any_path,
            host_leave=lambda host: host_leave(host, scope, self.setting),
            seen=(call.get("preview") or {}).get("seen"),
        )

    def _report(self, call_id: str, progress: Progress) -> None:
        told = progress_in_words(progress)
        self._ports.on_progress(call_id, told._replace(text=self._ports.scrub(told.text)))

    def _may_read(self) -> Callable[[Path], bool]:
        """Looks up once what the rules name: tools ask about many files."""
        return partial(_may_read, self.setting, names_in_rules(self.setting))


def _may_read(setting: Setting, named: RuleNames, path: Path) -> bool:
    policy = setting.policy
    names = (path, *other_names(path, named))
    return all(may_read(name, workspace=setting.workspace, rules=policy.rules, home=policy.home) for name in names)
