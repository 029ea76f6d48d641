"""Kill points: numbered places around each durable write and tool phase at which the process kills itself."""

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database

__all__ = ["Countdown", "KillPointSaver", "killable"]

P = ParamSpec("P")
T = TypeVar("T")


class Countdown:
    """Counts the points of this run and kills the process, really, at one of them."""

    def __init__(self, kill_at: int | None, record: Path | None = None, only: str = "") -> None:
        self._left = kill_at
        self._record = record
        self._only = only
        """Count only points of this label; empty: all."""

    def point(self, label: str) -> None:
        """Pass a point, or die there."""
        if self._record is not None:
            with self._record.open("a") as record:
                record.write(f"{label}\n")
        if self._left is not None and self._only in ("", label):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, label: str, method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """The method with a point before and one after it."""

        async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            self.point(f"before {label}")
            result = await method(*args, **kwargs)
            self.point(f"after {label}")
            return result

        return wrapped

    def beside(self, label: str, function: Callable[P, T]) -> Callable[P, T]:
        """The blocking function with a point before and one after it."""

        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            self.point(f"before {label}")
            result = function(*args, **kwargs)
            self.point(f"after {label}")
            return result

        return wrapped


class _Wrapped:
    """An object of which some methods have crash points around them."""

    def __init__(self, inner: object, label: str, names: Sequence[str], countdown: Countdown) -> None:
        self._inner = inner
        for name in names:
            setattr(self, name, countdown.around(f"{label}.{name}", getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def killable(inner: T, label: str, names: Sequence[str], countdown: Countdown) -> T:
    """The object, with crash points around the named methods."""
    return cast("T", _Wrapped(inner, label, names, countdown))


class KillPointSaver(CheckpointSaver):
    """The product's saver with a crash point before and after each write."""

    def __init__(self, database: Database, countdown: Countdown) -> None:
        super().__init__(database)
        self._countdown = countdown

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See the saver."""
        put = self._countdown.around("saver.put", super().aput)
        return await put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See the saver."""
        await self._countdown.around("saver.put_writes", super().aput_writes)(config, writes, task_id, task_path)
