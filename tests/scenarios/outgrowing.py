"""Threads that outgrow their window: bulky results, a model that summarizes and refuses what is too long."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage

from graph_agent.calls import ToolCallInfo
from graph_agent.errors import ContextOverflow
from graph_agent.events import Compacted
from graph_agent.graph.history import require_valid
from graph_agent.ports import ModelRequest, OnDelta, Outcome, Scope
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import estimate_request_tokens
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.scenarios.stage import Stage

__all__ = ["RESULT", "SUMMARY", "WINDOW", "Bulky", "SummarizingModel", "compactions", "play", "sizes", "work"]

WINDOW = ContextWindow(6_000, "set", reserve=500)
RESULT = "one line of what was found\n" * 100
SUMMARY = "They agreed to use port 8080."


class Bulky(ScriptedToolbox):
    """Every call gives some thousand characters."""

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        await super().run(call, scope)
        return Outcome("success", f"{call['call_id']}\n{RESULT}")


class SummarizingModel(ScriptedModel):
    """Answers requests for a summary apart from its script, and refuses what is longer than it takes."""

    def __init__(self, *replies: AIMessage | Exception, summary: AIMessage | Exception | None = None) -> None:
        super().__init__(*replies)
        self.summary = text(SUMMARY) if summary is None else summary
        self.summaries: list[ModelRequest] = []
        self.takes = 1_000_000
        self.refused: list[int] = []
        self.stated_limit: int | None = None
        """The limit that a refusal names."""

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        require_valid(request.messages)  # type: ignore[arg-type]  # the port names the base type
        size = estimate_request_tokens(request.messages, request.tools)
        if size > self.takes:
            self.refused.append(size)
            overflow = ContextOverflow("too long for the model: use a larger one")
            overflow.most_tokens = self.stated_limit
            raise overflow
        if request.tools:
            return await super().reply(request, on_delta)
        self.summaries.append(request)
        if isinstance(self.summary, Exception):
            raise self.summary
        return self.summary


def work(turns: int, steps: int) -> list[AIMessage]:
    script: list[AIMessage] = []
    for turn in range(turns):
        script.extend(calls((f"c{turn}-{step}", "read_a")) for step in range(steps))
        script.append(text(f"done {turn}"))
    return script


async def play(stage: Stage, turns: int) -> list[str]:
    async with stage.open_session() as session:
        return [(await session.send(f"please do thing {turn}")).status for turn in range(turns)]


def compactions(stage: Stage) -> list[Compacted]:
    return [event for event in stage.events if isinstance(event, Compacted)]


def sizes(requests: Sequence[ModelRequest]) -> list[int]:
    return [estimate_request_tokens(request.messages, request.tools) for request in requests]
