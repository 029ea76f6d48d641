"""For clients of LangGraph's own API: questions in LangChain's review format, streamed tokens and events.

A session of ours needs none of this: it reads questions from the state and events from its bus. Elsewhere, under
LangGraph's server or in another program, the graph is run without our context, and only what it streams is seen.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

from graph_agent.calls import ToolCallInfo, allowed_answers
from graph_agent.events import Event, EventBus, event_to_json
from graph_agent.ports import ChatModel, Delta, ModelRequest, OnDelta, Outcome
from graph_agent.ports.reviews import (
    Review,
    decided_answers,
    decisions_example,
    decisions_in,
    decisions_problem,
    review_request,
)

__all__ = [
    "ObservedModel",
    "describe_questions",
    "observed_run",
    "read_answers",
    "stream_events_to",
    "unusable_reason",
]

_RECOVERY_CHOICE = "approve runs it again, respond records its result, reject cancels it."
_KEYS = ("approve", "recover")
"""Of the question list, in the order in which front ends get the questions."""


def describe_questions(question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]) -> dict[str, Any]:
    """The questions with all that a front end shows, also in the form of LangChain's review requests.

    `action_requests` and `review_configs` are in the order of `approve`, then `recover`.
    """
    described: dict[str, Any] = {"by": question["by"], "approve": [], "recover": []}
    for kind in _KEYS:
        for item in question[kind]:
            call = calls[item["call_id"]]
            shown = {key: call[key] for key in ("risk", "risk_reason", "summary", "preview") if key in call}
            facts = {"tool_name": call["tool_name"], "arguments": call["arguments"]}
            described[kind].append({**item, **facts, "allowed_answers": [*allowed_answers(call)], **shown})
    return {**described, **review_request(_reviews(question, calls))}


def unusable_reason(answer: Any, question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]) -> str:
    """Why a resume value answers nothing, with a valid example; empty if an answer of it can be used."""
    decisions, reviews = decisions_in(answer), _reviews(question, calls)
    if decisions is not None:
        return decisions_problem(decisions, reviews)
    answers = answer.get("answers") if isinstance(answer, Mapping) else None
    answers = answers if isinstance(answers, Mapping) else {}
    asked = [(item, allowed_answers(calls[item["call_id"]])) for key in _KEYS for item in question[key]]
    if any(_fits(answers.get(item["call_id"]), item, allowed) for item, allowed in asked):
        return ""
    return (
        f"{answer!r:.80} is not an answer. Resume with a list of {len(asked)} decisions, such as "
        f"Command(resume={decisions_example(reviews)}), or with an envelope: "
        f"{_envelope_example(question['by'], *asked[0])}."
    )


def read_answers(
    answer: Mapping[str, Any] | Sequence[Any], question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]
) -> Mapping[str, Any]:
    """The answers as our envelope; decisions of LangChain's front ends answer the questions in order."""
    decisions = decisions_in(answer)
    if decisions is None:
        return answer if isinstance(answer, Mapping) else {}
    given = decided_answers(decisions, _reviews(question, calls))
    asked = {item["call_id"]: item for key in _KEYS for item in question[key]}
    answers = {
        call_id: {
            **one,
            "attempt": asked[call_id]["attempt"],
            "args_digest": asked[call_id]["args_digest"],
            "decided_by": "client",
        }
        for call_id, one in given.items()
    }
    return {"by": question["by"], "answers": answers}


def _reviews(question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]) -> list[Review]:
    reviews = []
    for key in _KEYS:
        for item in question[key]:
            call, reason = calls[item["call_id"]], item["reason"]
            if key == "recover":
                reason = f"It was interrupted ({reason}). {_RECOVERY_CHOICE}"
            allowed = allowed_answers(call)
            reviews.append(Review(item["call_id"], call["tool_name"], call["arguments"], reason, allowed))
    return reviews


def _fits(answer: Any, item: Mapping[str, Any], allowed: Sequence[str]) -> bool:
    """Whether an answer of the envelope is for this question: its attempt, its arguments, a kind it allows."""
    same = ("attempt", "args_digest")
    is_named = isinstance(answer, Mapping) and all(answer.get(key) == item[key] for key in same)
    return is_named and answer.get("kind") in allowed


def _envelope_example(by: str, item: Mapping[str, Any], allowed: Sequence[str]) -> str:
    names = {"attempt": item["attempt"], "args_digest": item["args_digest"]}
    return json.dumps({"by": by, "answers": {item["call_id"]: {"kind": allowed[0], **names}}})


StreamWriter = Callable[[Any], None]
_writer: ContextVar[StreamWriter | None] = ContextVar("stream_writer", default=None)
_streamed: "WeakSet[EventBus]" = WeakSet()


def stream_events_to(writer: StreamWriter, bus: EventBus) -> None:
    """From now on, in this context, write the events of the bus as JSON to a custom stream of LangGraph's too."""
    _writer.set(writer)
    if bus not in _streamed:
        _streamed.add(bus)
        bus.subscribe(_write)


def _write(number: int, event: Event) -> None:  # noqa: ARG001 - the shape of a subscriber
    if (writer := _writer.get()) is not None:
        writer(event_to_json(event))


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """A model whose requests LangChain's callbacks see, which make token streams, event streams and traces."""

    inner: ChatModel

    @property
    def label(self) -> str:
        """See `ChatModel`."""
        return self.inner.label

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel`. Callbacks run beside the request, in the order of its pieces.

        The message has the id of what was streamed of it, or none: providers repeat theirs.
        """
        manager = get_async_callback_manager_for_config(ensure_config())
        if not manager.handlers:
            return (await self.inner.reply(request, on_delta)).model_copy(update={"id": None})
        [run] = await manager.on_chat_model_start(
            {"name": self.label}, [list(request.messages)], name=self.label, invocation_params={"model": self.label}
        )
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        message_id = f"ai-{run.run_id.hex}"

        def take(delta: Delta) -> None:
            on_delta(delta)
            if delta.kind == "text" and delta.text:
                pieces.put_nowait(delta.text)

        reporting = asyncio.create_task(_report(run, pieces, message_id))
        try:
            message = await self.inner.reply(request, take)
        except BaseException as error:
            reporting.cancel()
            await run.on_llm_error(error)
            raise
        message = message.model_copy(update={"id": message_id})
        pieces.put_nowait(None)
        await reporting
        await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))
        return message


async def _report(run: AsyncCallbackManagerForLLMRun, pieces: "asyncio.Queue[str | None]", message_id: str) -> None:
    while (text := await pieces.get()) is not None:
        chunk = ChatGenerationChunk(message=AIMessageChunk(content=text, id=message_id))
        await run.on_llm_new_token(text, chunk=chunk)


async def observed_run(call: ToolCallInfo, work: Awaitable[Outcome]) -> Outcome:
    """Await the run of a call and let LangChain's callbacks see it."""
    manager = get_async_callback_manager_for_config(ensure_config())
    if not manager.handlers:
        return await work
    name = call["tool_name"]
    run = await manager.on_tool_start(
        {"name": name}, json.dumps(call["arguments"]), name=name, inputs=dict(call["arguments"])
    )
    try:
        outcome = await work
    except BaseException as error:
        await run.on_tool_error(error)
        raise
    message = outcome.output or outcome.error or ""
    await run.on_tool_end(ToolMessage(message, tool_call_id=call["call_id"], name=name))
    return outcome
