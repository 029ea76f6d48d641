"""Give a thread a title, also while it is at work."""

from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.errors import UsageError
from graph_agent.ports import SystemClock
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.threads import ThreadTable

__all__ = ["rename"]


async def rename(database: Path, text: str, title: str) -> tuple[str, str]:
    """Rename the thread that the text names; its whole id and the title it has now, which is one line.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        UsageError: the title is blank.
    """
    line = " ".join(title.split())
    if not line:
        raise UsageError("the title is blank; give a thread some words to be known by")
    with read_database(database) as reader:
        thread_id = reader.resolve(text, kinds=("thread", "checkpoint")).thread_id
    async with await Database.open(database) as opened:
        await ThreadTable(opened, SystemClock()).set_title(thread_id, line)
    with read_database(database) as reader:
        return thread_id, reader.thread(thread_id).title
