from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.graph.reasoning import NOTHING_NEW, news_of

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState


class _Ended:
    def __init__(self, **ended: str) -> None:
        self._ended = ended

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        return self._ended if thread_id == "t1" else {}


def _state(**channels: object) -> "AgentState":
    return cast("AgentState", {"messages": [HumanMessage("go")], **channels})


async def test_each_end_is_told_once_with_how_it_came() -> None:
    shells = _Ended(sh1="exit code 1  $ a", sh2="ended with the session  $ b\nc")

    first = await news_of(shells, _state(), "t1")
    again = await news_of(shells, _state(reported_shells=["sh1", "sh2"]), "t1")
    later = await news_of(shells, _state(reported_shells=["sh1"]), "t1")

    assert first.lines == ("sh1: exit code 1 $ a", "sh2: ended with the session $ b c")
    assert first.update == {"reported_shells": ["sh1", "sh2"]}
    assert (again, later.update) == (NOTHING_NEW, {"reported_shells": ["sh2"]})


async def test_of_many_the_newest_are_named_and_the_others_counted() -> None:
    news = await news_of(_Ended(**{f"sh{number}": "x" * 1000 for number in range(12)}), _state(), "t1")

    assert (news.lines[0], len(news.lines), len(news.told)) == ("2 more; bash_list names them", 11, 12)
    assert max(map(len, news.lines)) < 320


async def test_it_is_told_behind_results_and_never_behind_a_reply() -> None:
    result = [
        AIMessage("", tool_calls=[{"id": "c1", "name": "ls", "args": {}}]),
        ToolMessage("a", tool_call_id="c1"),
    ]
    shells = _Ended(sh1="exit code 0")

    assert (await news_of(shells, _state(messages=result), "t1")).told == ("sh1",)
    assert await news_of(shells, _state(messages=[HumanMessage("go"), AIMessage("ok")]), "t1") == NOTHING_NEW
