"""What the model is told beside the conversation: which background shells ended since it last looked.

The state keeps what was told, in one step with the reply to it: a kill in between tells it again, a rewind too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.graph.history import printable
from graph_agent.ports.shells import ShellNews

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState

__all__ = ["NOTHING_NEW", "News", "news_of"]

_MOST = 10
_COMMAND_CHARS = 300


@dataclass(frozen=True, slots=True)
class News:
    """What is new for one request."""

    lines: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def update(self) -> dict[str, Any]:
        """For the state, once the model has replied to it."""
        return {"told_shells": list(self.told)} if self.told else {}


NOTHING_NEW = News()


async def news_of(shells: ShellNews, state: "AgentState", thread_id: str) -> News:
    """What ended and was not told; behind a message of the model there is no place to tell it."""
    messages = state["messages"]
    if not messages or messages[-1].type not in ("human", "tool"):
        return NOTHING_NEW
    told = state.get("told_shells", ())
    ended = {name: how for name, how in (await shells.ended(thread_id)).items() if name not in told}
    return News(_lines(ended), tuple(ended)) if ended else NOTHING_NEW


def _lines(ended: Mapping[str, str]) -> tuple[str, ...]:
    newest = list(ended.items())[-_MOST:]
    more = len(ended) - len(newest)
    counted = [f"{more} more; bash_list names them"] if more else []
    return tuple(map(printable, [*counted, *(f"{name}: {_cut(how)}" for name, how in newest)]))


def _cut(how: str) -> str:
    line = " ".join(how.split())
    return line if len(line) <= _COMMAND_CHARS else f"{line[:_COMMAND_CHARS]}…"
