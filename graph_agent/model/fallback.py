"""Several models in a row: the next is asked while one cannot answer. Knows no endpoint and no setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph_agent.errors import ContextOverflow, ModelError
from graph_agent.model.failures import Unavailable
from graph_agent.model.openai import OpenAIModel
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = ["ModelRow"]


class ModelRow:
    """A `ChatModel`; each turn of the user begins with the first model again, and so does what follows a failure.

    Within a turn it stays where it is, whoever asks: the judge, a sub-agent, who writes a summary.
    """

    def __init__(self, models: Sequence[OpenAIModel]) -> None:
        self._models = tuple(models)
        self._place = 0

    @property
    def label(self) -> str:
        """See `ChatModel.label`; of the one that is asked now."""
        return self._models[self._place].label

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`; what each that was asked in vain said is told, and in the end all of it."""
        if request.begins_turn:
            self._place = 0
        failures: list[str] = []
        while True:
            try:
                return await self._models[self._place].reply(request, on_delta)
            except Unavailable as failure:
                failures.append(str(failure))
                if self._place + 1 == len(self._models):
                    self._place = 0
                    raise Unavailable(" ".join(failures)) from None
            except ContextOverflow:
                raise
            except ModelError as failure:
                self._place = 0
                raise ModelError(" ".join([*failures, str(failure)])) from None
            self._place += 1
            on_delta(Delta("retry", f"{failures[-1]} Asking {self.label} instead, until your next message."))

    async def close(self) -> None:
        """End the connections that are kept open."""
        for model in self._models:
            await model.close()
