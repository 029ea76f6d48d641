"""What values the parameters of the commands take, as far as that can be known while somebody types.

Reads the database and the settings, in silence: what cannot be read offers nothing. Never asks a network.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from graph_agent.calls import STATUSES
from graph_agent.cli.completing import FILES, Offer
from graph_agent.cli.views.calls import call_name
from graph_agent.config.paths import database_path
from graph_agent.errors import AgentError
from graph_agent.inspect import CallView, Reader, ThreadStatus

if TYPE_CHECKING:
    from graph_agent.config.settings import Settings

__all__ = ["FREE", "SOURCES", "values"]

_MOST = 100
"""So many ids are offered before anything of one was typed."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was typed of a value, and where ids are looked up."""

    typed: str
    database: Path


def values(path: Sequence[str], name: str, typed: str, given: Mapping[str, str]) -> Sequence[Offer]:
    """What a parameter may be given; see `graph_agent.cli.completing`."""
    source = SOURCES.get(f"{path[0]} {name}" if path else "") or SOURCES.get(name)
    if source is None:
        return ()
    try:
        return tuple(source(_Wish(typed, database_path(os.environ, given.get("db")))))
    except (AgentError, OSError):
        return ()


def _threads(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        found = reader.threads()
    for thread in found if wish.typed else found[:_MOST]:
        yield Offer(thread.thread_id, f"{thread.title or 'no title'} ({thread.status})")


def _checkpoints(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(one.id, one.title) for one in reader.offered_checkpoints(wish.typed, _MOST))


def _both(wish: _Wish) -> Iterator[Offer]:
    yield from _threads(wish)
    if wish.typed:
        yield from _checkpoints(wish)


def _waiting(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from _named(reader, (one for one in reader.approvals() if one.is_waiting))


def _waiting_or_all(wish: _Wish) -> Iterator[Offer]:
    yield from _waiting(wish)
    yield Offer("all", "every call that waits at the start")


def _interrupted(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from _named(reader, (one for one in reader.interrupted() if one.is_interrupted))


def _named(reader: Reader, views: Iterable[CallView]) -> Iterator[Offer]:
    shared = reader.shared_call_ids()
    for view in views:
        record = view.record
        about = record.get("display") or record["tool_name"]
        yield Offer(call_name(view.thread_id, record["call_id"], shared), str(about))


def _grants(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(str(one.id), ", ".join(one.rules)) for one in reader.grants())


def _models(wish: _Wish) -> Iterator[Offer]:
    """Profiles, the configured model, and those that threads were held with."""
    settings = _settings()
    yield from (Offer(name, "profile") for name in settings.models)
    named = [settings.model.name] if settings.model.name else []
    try:
        with Reader.open(wish.database) as reader:
            named += [thread.model.partition(" @ ")[0] for thread in reader.threads() if " @ " in thread.model]
    except (AgentError, OSError):
        pass
    yield from (Offer(name) for name in dict.fromkeys(named) if name not in settings.models)


def _keys(_: _Wish) -> Iterator[Offer]:
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.keys import known_keys

    yield from (Offer(key) for key in known_keys())


def _tools(_: _Wish) -> Iterator[Offer]:
    # Loaded with all that the tools stand on, which ids need not wait for.
    from asyncio import run

    from graph_agent.app.catalog import known_tools

    settings = _settings()
    known = run(known_tools(Path.cwd(), settings, settings.mode))
    yield from (Offer(tool.name) for tool in known.tools)


def _tools_used(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(one.tool) for one in reader.statistics())


def _modes(_: _Wish) -> Iterator[Offer]:
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.settings import Mode

    yield from (Offer(mode) for mode in get_args(Mode))


def _servers(_: _Wish) -> Iterator[Offer]:
    yield from (Offer(name) for name in _settings().mcp_servers)


def _settings() -> "Settings":
    """The user's own: a project's file is looked at only where somebody works."""
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.load import load_settings

    return load_settings(os.environ)


def _words(*words: str) -> Callable[[_Wish], Iterable[Offer]]:
    return lambda _: [Offer(word) for word in words]


def _files(_: _Wish) -> Iterable[Offer]:
    return [FILES]


SOURCES: Mapping[str, Callable[[_Wish], Iterable[Offer]]] = {
    "thread": _threads,
    "threads": _threads,
    "resume": _both,
    "identifier": _both,
    "target": _both,
    "checkpoint": _checkpoints,
    "old": _checkpoints,
    "new": _checkpoints,
    "approve": _waiting_or_all,
    "reject": _waiting_or_all,
    "call": _waiting,
    "retry": _interrupted,
    "done": _interrupted,
    "cancel": _interrupted,
    "grant": _grants,
    "model": _models,
    "model name": _models,
    "key": _keys,
    "tool": _tools_used,
    "policy tool": _tools,
    "tools name": _tools,
    "mcp name": _servers,
    "mode": _modes,
    "everything": _words("retry", "done", "cancel"),
    "status": _words(*STATUSES),
    "until": _words(*get_args(ThreadStatus)),
    "risk": _words("low", "medium", "high"),
    "form": _words("terminal", "mermaid", "svg", "png"),
    **dict.fromkeys(
        ("workspace", "add_dir", "db", "output", "backup", "file", "folder", "command", "source"), _files
    ),
}
"""By the name of the parameter, with the group before it where the name alone says too little."""

FREE = frozenset(
    (
        "message",
        "prompt",
        "reason",
        "result",
        "path",
        "as_id",
        "older_than",
        "max_size",
        "text",
        "title",
        "arguments",
        "url",
        "env",
        "header",
        "value",
    )
)
"""Parameters that take any text, for which nothing can be offered."""
