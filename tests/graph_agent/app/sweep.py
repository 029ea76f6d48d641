"""Kills imports and deletions before statements they run: `python -m tests.graph_agent.app.sweep FOLDER`.

Each life is a fork of this process. One JSON line per kill: what is there afterwards, and whether it is sound.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graph_agent.app.thread_import import import_thread
from graph_agent.app.threads import delete
from graph_agent.errors import UnknownId
from graph_agent.storage.sqlite.schema import open_connection
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text
from tests.fakes.thread_files import as_history, export
from tests.graph_agent.storage.sqlite.sweep import fork

_THREAD = "thread-1"
_STEP = {"import": 6, "delete": 2}
"""Every so many statements one life is killed."""
_TABLES = """
SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'thread_id'
"""

Work = Callable[[Path], Coroutine[Any, Any, object]]


def killed_at(fatal: int, work: Work, database: Path) -> bool:
    """Do the work in a life that dies before its nth statement; whether it came to its end."""

    def opened(path: Path, migrations: Any) -> sqlite3.Connection:
        connection = open_connection(path, migrations)
        left = iter(range(fatal))

        def count(_: str) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        connection.set_trace_callback(count)
        return connection

    async def live(_: int) -> None:
        with patch("graph_agent.storage.sqlite.database.open_connection", opened):
            await work(database)

    return fork(live)[1]


def there(database: Path, file: str) -> str:
    """What is left of the thread."""
    try:
        return "whole" if as_history(export(database, _THREAD)) == as_history(file) else "changed"
    except (UnknownId, IndexError):
        return "gone"


def look(database: Path, file: str) -> dict[str, Any]:
    """Whether the database is sound, and the thread whole or without a trace."""
    connection = sqlite3.connect(database)
    sound = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    traces = sum(
        connection.execute(f"SELECT count(*) FROM {table} WHERE thread_id = ?", (_THREAD,)).fetchone()[0]  # noqa: S608 - names from the schema
        for (table,) in connection.execute(_TABLES).fetchall()
        if table != "leases"
    )
    connection.close()
    return {"sound": sound, "there": "gone" if not traces else there(database, file)}


def lives(folder: Path, name: str, work: Work, start: Path, file: str) -> Iterator[dict[str, Any]]:
    for fatal in range(0, 10_000, _STEP[name]):
        life = folder / f"{name}-{fatal}"
        shutil.copytree(start, life)
        survived = killed_at(fatal, work, life / "agent.db")
        yield {"work": name, "survived": survived, **look(life / "agent.db", file)}
        if survived:
            return


def main(folder: Path) -> None:
    full, empty = folder / "full", folder / "empty"
    play(full / "agent.db", "go", replies=(calls(("c1", "read_a")), text("done")))
    play(empty / "agent.db")
    file = export(full / "agent.db", _THREAD)
    (folder / "file.json").write_text(file)

    async def take_in(database: Path) -> object:
        return await import_thread(database, str(folder / "file.json"))

    async def delete_it(database: Path) -> object:
        return await delete(database, [_THREAD], lambda _: True)

    for name, work, start in (("import", take_in, empty), ("delete", delete_it, full)):
        for life in lives(folder, name, work, start, file):
            print(json.dumps(life), flush=True)  # noqa: T201 - how the sweep talks to its test


if __name__ == "__main__":
    main(Path(sys.argv[1]))
