"""Background shells as a session has them: real commands, a real database, and the tools for them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.calls import process_marker
from graph_agent.errors import StorageError
from graph_agent.ports import SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal, SqliteShells
from graph_agent.toolbox.background_shells import Shells
from graph_agent.toolbox.tool_context import RecordedProcesses
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import until
from tools.base import Limits, ProcessRecorder, ToolContext, ToolResult
from tools.running import execute
from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
from tools.shell_ops.bash import BashTool

if TYPE_CHECKING:
    from graph_agent.events import Event

__all__ = ["Background", "background"]


class Background:
    """The shells of one run; a second one on the same database stands for the run after a kill."""

    def __init__(self, folder: Path, database: Database, around: ToolEnvironment, **options: Any) -> None:
        self.around = around
        self.events: list[Event] = []
        clock, blobs = SystemClock(), FileBlobs(folder / "blobs")
        self.blobs = blobs
        self.records = SqliteShells(database, clock)
        self.limits = options.pop("limits", Limits())
        self.shells = Shells(self.records, blobs, self.events.append, limits=self.limits, **options)
        self.database = database
        self._journal = SqliteJournal(database, blobs, clock)
        self._folder = folder
        # Of this test alone: by marks made of it, processes are found and ended wherever they are.
        self._owner = f"the run in {folder}"
        self._calls = 0
        self.processes: ProcessRecorder = RecordedProcesses(self._journal.record_process)

    def next_run(self, **options: Any) -> "Background":
        """What a later process has: the same database, and no shell of its own."""
        return Background(self._folder, self.database, self.around, **options)

    async def start(self, command: str, *, thread: str = "t1", call: str = "", **arguments: Any) -> ToolResult:
        """As bash(background=true) does it, in a call that the journal knows."""
        self._calls += 1
        context = self.context(thread, call or f"c{self._calls}")
        await self._journal.claim(thread, context.call_id, context.attempt, self._owner, None)
        tool = BashTool()
        tool.shells = self.shells
        given = {"command": command, "background": True, **arguments}
        # As the toolbox runs it: a failing disk ends the run.
        return await execute(tool, given, context, reraise=(StorageError,))

    async def output(self, shell: str, *, call: str = "", thread: str = "t1") -> ToolResult:
        """As bash_output does it."""
        self._calls += 1
        tool = BashOutputTool()
        tool.shells = self.shells
        return await tool.execute(id=shell, context=self.context(thread, call or f"c{self._calls}"))

    async def kill(self, shell: str, *, thread: str = "t1") -> ToolResult:
        """As bash_kill does it."""
        tool = BashKillTool()
        tool.shells = self.shells
        return await tool.execute(id=shell, context=self.context(thread, "kill"))

    async def listed(self, *, thread: str = "t1") -> ToolResult:
        """As bash_list does it."""
        tool = BashListTool()
        tool.shells = self.shells
        return await tool.execute(context=self.context(thread, "list"))

    def context(self, thread: str, call: str) -> ToolContext:
        """What a call runs with."""
        return self.around.context(
            thread_id=thread,
            call_id=call,
            mark=process_marker(self._owner, call, 1),
            blobs=self.blobs,
            limits=self.limits,
            processes=self.processes,
        )

    async def pid(self, name: str = "pid") -> int:
        """The number that a command wrote into a file of the workspace."""
        path = self.around.workspace / name
        assert await until(lambda: path.exists() and path.read_text().strip().isdigit())
        return int(path.read_text())


@asynccontextmanager
async def background(folder: Path, **options: Any) -> AsyncIterator[Background]:
    """The shells of a run; all are ended when the block ends."""
    async with await Database.open(folder / "agent.db") as database:
        shells = Background(folder, database, ToolEnvironment(folder), **options)
        try:
            yield shells
        finally:
            await shells.shells.close()
