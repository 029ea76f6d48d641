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

__all__ = [
    "ObservedModel",
    "describe_questions",
    "observed_run",
    "read_answers",
    "stream_events_to",
    "unusable_reason",
]

_TYPES: Mapping[str, str] = {
    "approve": "approve",
    "retry": "approve",
    "edit": "edit",
    "reject": "reject",
    "cancel": "reject",
    "answer": "respond",
    "done": "respond",
}
"""The decision of LangChain's front ends that stands for each of our answers."""

_RECOVERY_CHOICE = "approve runs it again, respond records its result, reject cancels it."
_KEYS = ("approve", "recover")
"""Of the question list, in the order in which front ends get the questions."""


def describe_questions(question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]) -> dict[str, Any]:
    """The questions with all that a front end shows, also in the shape of LangChain's human-in-the-loop requests.

    `action_requests` and `review_configs` are in the order of `approve`, then `recover`.
    """
    described: dict[str, Any] = {"by": question["by"], "approve": [], "recover": []}
    requests, reviews = [], []
    for kind in _KEYS:
        for item in question[kind]:
            call = calls[item["call_id"]]
            answers = [*allowed_answers(call)]
            shown = {key: call[key] for key in ("risk", "risk_reason", "summary", "preview") if key in call}
            facts = {"tool_name": call["tool_name"], "arguments": call["arguments"], "allowed_answers": answers}
            described[kind].append({**item, **facts, **shown})
            reason = item["reason"]
            if kind == "recover":
                reason = f"It was interrupted ({reason}). {_RECOVERY_CHOICE}"
            requests.append({"name": call["tool_name"], "args": call["arguments"], "description": reason})
            decisions = list(dict.fromkeys(_TYPES[answer] for answer in answers))
            reviews.append({"action_name": call["tool_name"], "allowed_decisions": decisions})
    return {**described, "action_requests": requests, "review_configs": reviews}


def unusable_reason(answer: Any, question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]) -> str:
    """Why a resume value answers nothing, with a valid example; empty if an answer of it can be used."""
    decisions = _decisions(answer)
    asked = [(item, allowed_answers(calls[item["call_id"]])) for key in _KEYS for item in question[key]]
    example = _example(asked)
    if decisions is None:
        answers = answer.get("answers") if isinstance(answer, Mapping) else None
        answers = answers if isinstance(answers, Mapping) else {}
        if any(_fits(answers.get(item["call_id"]), item, allowed) for item, allowed in asked):
            return ""
        return (
            f"{answer!r:.80} is not an answer. Resume with a list of {len(asked)} decisions, such as "
            f"Command(resume={example}), or with an envelope: {_envelope_example(question['by'], *asked[0])}."
        )
    if len(decisions) != len(asked):
        return (
            f"Questions: {len(asked)}; decisions: {len(decisions)}. Give one decision for each question, in order: "
            f"{example}."
        )
    for number, (decision, (item, allowed)) in enumerate(zip(decisions, asked, strict=True), start=1):
        if problem := _decision_problem(decision, item["call_id"], [_TYPES[kind] for kind in allowed]):
            return f"Decision {number}: {problem}. Valid: {example}."
    return ""


def read_answers(
    answer: Mapping[str, Any] | Sequence[Any], question: Mapping[str, Any], calls: Mapping[str, ToolCallInfo]
) -> Mapping[str, Any]:
    """The answers as our envelope; decisions of LangChain's front ends answer the questions in order."""
    decisions = _decisions(answer)
    if decisions is None:
        return answer if isinstance(answer, Mapping) else {}
    answers = {}
    for item, decision in zip((item for key in _KEYS for item in question[key]), decisions, strict=True):
        allowed = allowed_answers(calls[item["call_id"]])
        kind = next((one for one in allowed if _TYPES[one] == decision["type"]), str(decision["type"]))
        given: dict[str, Any] = {
            "kind": kind,
            "attempt": item["attempt"],
            "args_digest": item["args_digest"],
            "decided_by": "client",
            "reason": str(decision.get("message") or ""),
        }
        if kind == "edit":
            given["arguments"] = decision["edited_action"]["args"]
        answers[item["call_id"]] = given
    return {"by": question["by"], "answers": answers}


def _decisions(answer: Any) -> list[Any] | None:
    found = answer.get("decisions") if isinstance(answer, Mapping) else answer
    return found if isinstance(found, list) else None


def _decision_problem(decision: Any, call_id: str, types: Sequence[str]) -> str:
    if not isinstance(decision, Mapping) or decision.get("type") not in _TYPES.values():
        return f"{decision!r:.80} has no valid type; valid types: {', '.join(sorted(set(_TYPES.values())))}"
    if decision["type"] not in types:
        return f"type {decision['type']!r} is not allowed for call {call_id!r}; allowed: {', '.join(types)}"
    edited = decision.get("edited_action")
    if decision["type"] == "edit" and not (isinstance(edited, Mapping) and isinstance(edited.get("args"), Mapping)):
        return 'an edit needs "edited_action": {"name": ..., "args": {...}}'
    return ""


def _fits(answer: Any, item: Mapping[str, Any], allowed: Sequence[str]) -> bool:
    """Whether an answer of the envelope is for this question: its attempt, its arguments, a kind it allows."""
    same = ("attempt", "args_digest")
    is_named = isinstance(answer, Mapping) and all(answer.get(key) == item[key] for key in same)
    return is_named and answer.get("kind") in allowed


def _example(asked: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> str:
    """One decision for each question, of a type that it allows."""
    return json.dumps({"decisions": [{"type": _TYPES[allowed[0]]} for _, allowed in asked]})


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
