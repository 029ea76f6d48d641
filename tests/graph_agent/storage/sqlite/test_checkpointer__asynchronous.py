import pytest

from graph_agent.errors import InternalError
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of


async def test_a_graph_that_is_run_on_the_thread_of_its_caller_is_told_how_to_run_it(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))

    with pytest.raises(InternalError, match="use `aget_tuple` and `ainvoke`"):
        graph.invoke({"messages": []}, config_of("t"))


@pytest.mark.parametrize(
    "method", ["get_tuple", "list", "put", "put_writes", "delete_thread", "get_delta_channel_history"]
)
async def test_nothing_is_done_on_the_thread_of_the_caller(database: Database, method: str) -> None:
    with pytest.raises(InternalError, match=f"use `a{method}`"):
        getattr(CheckpointSaver(database), method)()
