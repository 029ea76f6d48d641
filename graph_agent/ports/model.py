"""What the graph needs of a chat model: requests, streamed deltas, model selection and context windows."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage


__all__ = [
    "ASSUMED_TOKENS",
    "UNFULFILLED",
    "ChatModel",
    "ContextWindow",
    "Delta",
    "FindContextWindow",
    "FindUnusedRequests",
    "ModelRequest",
    "Models",
    "OnDelta",
    "assumed_context_window",
    "no_unused_requests",
]

UNFULFILLED = "unmet"
"""Key in the `response_metadata` of a reply: why the request was not fulfilled, if that is certain."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A streamed piece of a reply, for display only; the finished message is what counts."""

    kind: Literal["text", "reasoning", "tool_call", "retry", "note"]
    text: str = ""
    """New text; for a tool call the new piece of its raw arguments; for a retry why and how long it waits;
    for a note what the user should know about the reply."""
    index: int = 0
    """Which call of the message a tool-call piece belongs to."""
    tool_name: str = ""
    """Name of the tool as far as it is known."""
    wait_s: float = 0.0
    """For a retry: seconds until it starts."""


OnDelta = Callable[[Delta], None]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: a valid history (system message first) and the offered tools."""

    messages: "Sequence[BaseMessage]"
    tools: Sequence[Mapping[str, Any]]
    """OpenAI function declarations: `{"type": "function", "function": {name, description, parameters}}`."""
    notices: tuple[str, ...] = ()
    """Sent once, outside of any message, a line each: background shells that ended since the last request."""
    starts_turn: bool = False
    """Whether it is the first of a user's turn: an endpoint that failed before is tried again."""
    response_schema: Mapping[str, Any] | None = None
    """JSON Schema that a text reply should fit; sent where the endpoint accepts it, and checked by nobody here."""

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the offered tools."""
        return frozenset(str(tool["function"]["name"]) for tool in self.tools)


class ChatModel(Protocol):
    """A chat model of any kind."""

    @property
    def label(self) -> str:
        """What the status line calls it, e.g. `gpt-5 @ api.openai.com` or `offline mode, no model`."""

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """Send one request and return the finished message.

        The message has text or calls. Its `tool_calls` hold decoded argument objects, in the model's order; ids
        may be missing or repeated (the reasoning node makes them unique). Arguments that cannot be used are `{}`
        there, and `response_metadata["unusable_arguments"]` maps the call's position, as a string, to the reason
        in words for the model. `usage_metadata` is set where the provider told it. `response_metadata` may also
        hold `UNFULFILLED`, `FULL_RESULTS` (see `graph_agent.calls`), `reasoning`, and `extra_content`, which some
        providers want to be sent back with it.

        Raises:
            ModelError: for good, after all retries. Nothing of a broken reply is returned.
        """


class Models(Protocol):
    """Which model a session uses, and which others are available."""

    @property
    def label(self) -> str:
        """What the status line calls the current one."""

    @property
    def name(self) -> str | None:
        """The profile's name, or the provider's name of the model; None while none is chosen, empty where there is
        nothing to choose."""

    async def names(self) -> tuple[str, ...]:
        """The models to choose from, in the provider's order.

        Raises:
            ModelError: they cannot be listed now.
        """

    async def switch(self, name: str) -> None:
        """Use this model from the next request on.

        Raises:
            UsageError: there is nothing to choose here.
        """


ASSUMED_TOKENS = 128_000
"""The context window of an unknown model."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The context window of one model."""

    tokens: int = ASSUMED_TOKENS
    source: Literal["set", "endpoint", "table", "assumed"] = "assumed"
    """Where the number comes from: settings, the endpoint's list of models, the table of known models, a guess."""
    reserve: int = 8_192
    """Tokens kept free for the reply."""
    compact_at: int = 80
    """Percent of what is left for the conversation; above it the conversation is compacted."""
    can_summarize: bool = True
    """Whether there is a language model to write a summary."""


FindContextWindow = Callable[[int], Awaitable[ContextWindow]]
"""The window of the current model, from the tokens of the next request: for a small one no endpoint is asked."""


async def assumed_context_window(tokens: int) -> ContextWindow:  # noqa: ARG001 - the same whatever the request
    """The window of an unknown model."""
    return ContextWindow()


FindUnusedRequests = Callable[[str], Awaitable[Sequence[int]]]
"""The estimated tokens of each request of a thread that was sent early and not used: its process was killed, or the
turn needed another one."""


async def no_unused_requests(thread_id: str) -> Sequence[int]:  # noqa: ARG001 - the same for every thread
    """Where no request is sent early."""
    return ()
