from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.graph.reasoning import ended_shells, shell_notices
from graph_agent.ports.background import NoShells

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState


class _Ended(NoShells):
    def __init__(self, **ended: str) -> None:
        self._ended = ended

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        return self._ended if thread_id == "t1" else {}


def _state(**channels: object) -> "AgentState":
    return cast("AgentState", {"messages": [HumanMessage("go")], **channels})


async def test_each_end_is_reported_once_with_its_cause() -> None:
    shells = _Ended(sh1="exit code 1  $ a", sh2="ended with the session  $ b\nc")

    first = await ended_shells(shells, _state(), "t1")
    again = await ended_shells(shells, _state(reported_shells=["sh1", "sh2"]), "t1")
    later = await ended_shells(shells, _state(reported_shells=["sh1"]), "t1")

    assert shell_notices(first) == ("sh1: exit code 1 $ a", "sh2: ended with the session $ b c")
    assert ([*first], again, [*later]) == (["sh1", "sh2"], {}, ["sh2"])


def test_of_many_the_newest_are_named_and_the_others_counted() -> None:
    lines = shell_notices({f"sh{number}": "x" * 1000 for number in range(12)})

    assert (lines[0], len(lines)) == ("2 more; bash_list names them", 11)
    assert max(map(len, lines)) < 320


async def test_ends_are_reported_behind_results_and_never_behind_a_reply() -> None:
    result = [
        AIMessage("", tool_calls=[{"id": "c1", "name": "ls", "args": {}}]),
        ToolMessage("a", tool_call_id="c1"),
    ]
    shells = _Ended(sh1="exit code 0")

    assert [*await ended_shells(shells, _state(messages=result), "t1")] == ["sh1"]
    assert await ended_shells(shells, _state(messages=[HumanMessage("go"), AIMessage("ok")]), "t1") == {}
