"""The chat model on a GGUF file in this process: leads a small model step by step and makes ordinary tool calls."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from langchain_core.messages import AIMessage

from graph_agent.config.model_choice import local_label
from graph_agent.model.local import actions as steps
from graph_agent.model.local.runtime import Completion, CompletionRequest, Runtime, Worker
from graph_agent.model.offline.commands import Command, ReplaceText, RunShell
from graph_agent.model.offline.model import (
    Answer,
    call_message,
    finished_calls,
    last_prompt,
    next_step,
    text_message,
)
from graph_agent.model.offline.parser import is_chinese, parse
from graph_agent.model.offline.plan import PlannedCall, restore_text
from graph_agent.model.single_model import SingleModel, append_notices, reply_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["LocalModel"]

_CUT = "The local model did not finish within its token limit, so nothing was done. Ask for something smaller."
_TOO_LONG = (
    "{path} is too long for the local model to change. An exact replacement needs no model: "
    "replace A by B in {path}"
)
_NO_FILE = "The local model gave no new text for {path}, so nothing was changed."
_UNCHANGED = "The local model would leave {path} as it is, so nothing was changed."
_REPEATED = "The local model asks for the same call again, so the turn ends here. {result}"
_PROGRAM = re.compile(r"[\w.-]*[./][\w./-]*|[a-z0-9_+-]+")
_WORDS = frozenset(("the", "a", "an", "all", "my", "it", "this", "that", "tests", "unit"))


class LocalModel(SingleModel):
    """Implements `ChatModel` and `Models`."""

    def __init__(self, path: Path, runtime: Runtime, *, context: int, commands_first: bool) -> None:
        self._label = local_label(path)
        super().__init__(f"{self._label} answers here, and there is no endpoint.")
        self._runtime = runtime
        self._worker = Worker(runtime)
        self._context = context
        self._commands_first = commands_first

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return self._label

    async def close(self) -> None:
        """Stop a running generation; the weights stay for the next session of this process."""
        await self._worker.close()

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`."""
        begin = last_prompt(request.messages)
        if begin < 0:
            return text_message("Nothing was asked.", self._label, on_delta)
        prompt = request.messages[begin].text
        # The offline commands come first: they cost nothing, the model takes seconds.
        commands = _certain_commands(prompt) if self._commands_first else ()
        if not request.tools:
            completion = await self._generate(steps.plain_prompt(request.messages, self._context), on_delta)
            reply = self._message(completion.text.strip() or _CUT, on_delta, completion)
        elif commands:
            done = finished_calls(request.messages[begin + 1 :])
            step = next_step(commands, request.tool_names, done, chinese=is_chinese(prompt))
            if isinstance(step, Answer):
                reply = text_message(step.text, self._label, on_delta, step.unmet)
            else:
                reply = self._message(step, on_delta)
        else:
            reply = await self._take_step(request, begin, prompt, on_delta)
        return reply_with_notices(reply, request, on_delta, chinese=is_chinese(prompt))

    async def _take_step(self, request: ModelRequest, begin: int, prompt: str, on_delta: OnDelta) -> AIMessage:
        finished = steps.finished_calls(request.messages[begin + 1 :])
        match steps.next_step(finished):
            case PlannedCall() as call:
                return self._message(call, on_delta)
            case steps.FinalText(text=text):
                return self._message(text, on_delta)
            case steps.ActionRequest():
                return await self._choose_action(request, begin, finished, on_delta)
            case steps.AnswerRequest(last=last):
                ask = steps.answer_prompt(append_notices(prompt, request), last, self._context)
                completion = await self._generate(ask, on_delta, lambda piece: on_delta(Delta("text", piece)))
                return self._message(completion.text.strip() or last.result, lambda _: None, completion)
            case steps.RewriteRequest(path=path, listing=listing):
                return await self._rewrite_file(path, listing, prompt, on_delta)
            case other:
                assert_never(other)

    async def _choose_action(
        self, request: ModelRequest, begin: int, finished: list[steps.FinishedCall], on_delta: OnDelta
    ) -> AIMessage:
        prompt = append_notices(request.messages[begin].text, request)
        actions = steps.actions_for(request.tool_names)
        ask = steps.choice_prompt(prompt, request.messages[:begin], finished, actions)
        completion = await self._generate(ask, on_delta)
        choice = steps.parse_action(completion.text, actions) if completion.is_complete else None
        if choice is None:
            return self._message(_CUT, on_delta, completion)
        name, arguments = choice
        if name == steps.REPLY:
            return self._message(arguments["text"].strip() or "…", on_delta, completion)
        if name == steps.CHANGE:
            path = arguments["file_path"]
            read = PlannedCall("read_file", {"file_path": path})
            return self._message(read, on_delta, completion, steps.change_notice(path))
        same = [call for call in finished if (call.tool, call.arguments) == (name, arguments)]
        if same:
            return self._message(_REPEATED.format(result=same[-1].result), on_delta, completion)
        return self._message(PlannedCall(name, arguments), on_delta, completion)

    async def _rewrite_file(self, path: str, listing: str, prompt: str, on_delta: OnDelta) -> AIMessage:
        present = restore_text(listing)
        ask = None if present is None else steps.rewrite_prompt(prompt, path, present, self._context)
        if ask is None:
            return self._message(_TOO_LONG.format(path=path), on_delta)
        completion = await self._generate(ask, on_delta)
        content = steps.extract_file(completion.text)
        if not completion.is_complete or content is None or content == present:
            line = _CUT if not completion.is_complete else _NO_FILE if content is None else _UNCHANGED
            return self._message(line.format(path=path), on_delta, completion)
        return self._message(
            PlannedCall("write_file", {"file_path": path, "content": content}), on_delta, completion
        )

    async def _generate(
        self, ask: CompletionRequest, on_delta: OnDelta, on_piece: Callable[[str], None] = lambda _: None
    ) -> Completion:
        if not self._runtime.is_loaded:
            on_delta(Delta("note", f"Loading {self._label}; the first answer takes a few seconds longer."))
        return await self._worker.generate(ask, on_piece)

    def _message(
        self, content: PlannedCall | str, on_delta: OnDelta, used: Completion | None = None, text: str = ""
    ) -> AIMessage:
        """A call or a text as a message, with the tokens that were used for it."""
        if isinstance(content, PlannedCall):
            message = call_message(content, self._label, on_delta, text)
        else:
            message = text_message(content, self._label, on_delta)
        if used is None:
            return message
        total = used.input_tokens + used.output_tokens
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "total_tokens": total}
        return message.model_copy(update={"usage_metadata": usage})


def _certain_commands(prompt: str) -> tuple[Command, ...]:
    """The offline commands of a message that leaves no doubt; "run the tests" has the form of one and is none."""
    commands = parse(prompt)
    return commands if isinstance(commands, tuple) and all(map(_is_certain, commands)) else ()


def _is_certain(command: Command) -> bool:
    match command:
        case RunShell(command=line):
            first = _first_word(line)
            return first not in _WORDS and _PROGRAM.fullmatch(first) is not None
        case ReplaceText(old=old, new=new):
            return not {_first_word(old), _first_word(new)} & _WORDS
        case _:
            return True


def _first_word(text: str) -> str:
    return next(iter(text.split()), "").lower()
