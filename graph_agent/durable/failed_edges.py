"""`retry_failed_edges`: a conditional edge that raised is evaluated again when its thread is resumed."""

from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, PendingWrite

__all__ = ["retry_failed_edges"]

SaverT = TypeVar("SaverT", bound=BaseCheckpointSaver[Any])
_ERROR, _HANDLED = "__error__", "__error_source_node__"
"""The channels in which LangGraph saves that a task raised, and that an error handler of the graph took over."""
_CONTROL = frozenset((_ERROR, _HANDLED, "__interrupt__", "__resume__", "__scheduled__"))
"""Channels that hold no result of a task."""


def retry_failed_edges(saver: SaverT) -> SaverT:
    """The same saver; whatever graph runs on it evaluates a conditional edge again that raised.

    LangGraph saves what a node returned before the edge behind it raised. When the thread is resumed, it considers
    the node finished, skips the edge, and the run ends without an error. Here such a node counts as not finished,
    so it runs again, and then its edge. `DurableTools` returns its recorded results; a model is asked again.
    """
    get_tuple, aget_tuple = saver.get_tuple, saver.aget_tuple

    def get(config: RunnableConfig) -> CheckpointTuple | None:
        return _without_failed_results(get_tuple(config))

    async def aget(config: RunnableConfig) -> CheckpointTuple | None:
        return _without_failed_results(await aget_tuple(config))

    vars(saver).update(get_tuple=get, aget_tuple=aget)
    return saver


def _without_failed_results(found: CheckpointTuple | None) -> CheckpointTuple | None:
    if found is None or not found.pending_writes:
        return found
    return found._replace(pending_writes=_usable(found.pending_writes))


def _usable(writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    handled = {task for task, channel, _ in writes if channel == _HANDLED}
    failed = {task for task, channel, _ in writes if channel == _ERROR} - handled
    return [write for write in writes if write[0] not in failed or write[1] in _CONTROL]
