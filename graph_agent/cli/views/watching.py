"""`inspect --watch`: the state of a thread shown again each time it changes, until somebody has seen enough.

Between two looks the file is not open: it is seen from outside whether it has changed, so that nothing is locked,
the log can be taken into the database, and another file may take its place.
"""

import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.place import reading
from graph_agent.cli.views.screen import print_json_line, print_lines, takes_sequences
from graph_agent.errors import AgentError, UnknownId
from graph_agent.inspect import Inspection, Lease, Reader, is_alive

__all__ = ["Watch", "watch"]

_TICK_S = 0.25
_SETTLED_S = 1.0
"""A file that changed so lately may have changed again within the same tick of its clock."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and how it is shown."""

    database: Path
    text: str
    """Thread, checkpoint or call; whatever it is, its thread's newest state is watched."""
    workspace: str | None
    until: str | None
    """The status that ends it."""
    as_data: Callable[[Inspection], Any] | None
    """Makes one line of JSON of each state; None: lines are shown."""
    as_lines: Callable[[Inspection, frozenset[str]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class _Look:
    """One state as it was found, or why it could not be."""

    found: Inspection | None
    shared: frozenset[str] = frozenset()
    holder: Lease | None = None
    trouble: str = ""
    is_gone: bool = False
    """Whether the thread was deleted: there is nothing to wait for any more."""


def watch(order: Watch) -> None:
    """Show each new state; ends with the status asked for, when nobody reads any more, or by Ctrl-C.

    Raises:
        UnknownId: nothing fits the id, or the thread was deleted meanwhile.
        StorageError: the database cannot be read at the first look; later on that is only told.
    """
    with reading(order.database) as reader:
        thread_id = reader.resolve(order.text, order.workspace).thread_id
    shown: _Look | None = None
    while True:
        stamp = _stamp(order.database)
        look = _look(order.database, thread_id)
        if look.is_gone:
            raise UnknownId(f"thread {thread_id!r} was deleted meanwhile")
        if shown is None or _differs(look, shown):
            _show(look, order)
            shown = look
        if look.found is not None and look.found.status == order.until:
            return
        if not _changes(order.database, stamp, look):
            return


def _look(database: Path, thread_id: str) -> _Look:
    try:
        with Reader.open(database) as reader:
            try:
                holder = reader.thread(thread_id).holder
            except UnknownId:
                return _Look(None, is_gone=True)
            return _Look(reader.inspection(thread_id), reader.shared_call_ids(), holder)
    except AgentError as trouble:
        return _Look(None, trouble=str(trouble))


def _differs(look: _Look, shown: _Look) -> bool:
    return (look.found, look.trouble) != (shown.found, shown.trouble)


def _show(look: _Look, order: Watch) -> None:
    if look.found is None:
        sys.stderr.write(f"graph-agent: {escape(look.trouble)}\n")
    elif order.as_data is not None:
        print_json_line(order.as_data(look.found))
    elif takes_sequences():
        _redraw(list(order.as_lines(look.found, look.shared)))
    else:
        print_lines([f"--- {time.strftime('%H:%M:%S')} ---", *order.as_lines(look.found, look.shared), ""])
    sys.stdout.flush()


def _redraw(lines: Sequence[str]) -> None:
    """Over what stands on the screen; never more than fits, because what scrolls away is no picture."""
    rows = shutil.get_terminal_size().lines - 1
    kept = lines if len(lines) <= rows else [*lines[: rows - 1], f"… {len(lines) - rows + 1} more lines"]
    # Long lines are cut by the terminal itself, which knows best how wide they are.
    sys.stdout.write("\x1b[?7l\x1b[H\x1b[2J")
    print_lines(kept)
    sys.stdout.write("\x1b[?7h")


def _changes(database: Path, stamp: tuple[Any, ...], look: _Look) -> bool:
    """Wait until it is worth another look; False when nobody reads the output any more."""
    size = shutil.get_terminal_size()
    was_alive = look.holder is not None
    while True:
        time.sleep(_TICK_S)
        if _is_unheard():
            return False
        is_same_life = not was_alive or (look.holder is not None and is_alive(look.holder))
        if _stamp(database) != stamp or not is_same_life or shutil.get_terminal_size() != size:
            return True
        if _newest(stamp) > time.time() - _SETTLED_S:
            return True


def _stamp(database: Path) -> tuple[Any, ...]:
    """What tells from outside that a file or its log has changed, or that another has taken its place."""
    return tuple(_seen(path) for path in (database, database.with_name(f"{database.name}-wal")))


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _newest(stamp: tuple[Any, ...]) -> float:
    return max((seen[2] / 1e9 for seen in stamp if seen is not None), default=0.0)


def _is_unheard() -> bool:
    """Whether stdout leads to a pipe whose other end is closed."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False
