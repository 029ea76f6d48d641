"""A small language model within this process, led step by step. Yields ordinary tool calls, and knows no graph.

What the offline command language reads with certainty goes by it, at no cost; the rest takes seconds.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from langchain_core.messages import AIMessage

from graph_agent.config.model_choice import local_label
from graph_agent.model.local.actions import (
    CHANGE,
    REPLY,
    Answer,
    Choose,
    Done,
    Rewrite,
    actions_for,
    answering,
    choosing,
    chosen,
    new_text,
    next_step,
    plainly,
    rewriting,
    taken_since,
    to_change,
)
from graph_agent.model.local.runtime import Ask, Generated, Runtime, Worker
from graph_agent.model.notices import append_notices, reply_with_notices
from graph_agent.model.offline.commands import Command, ReplaceText, RunShell
from graph_agent.model.offline.grammar import NotUnderstood, is_chinese, parse
from graph_agent.model.offline.model import Ended, calling, finished_since, newest_prompt, speaking, step_of
from graph_agent.model.offline.plan import Call, whole_text
from graph_agent.model.single_model import SingleModel
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from graph_agent.model.local.actions import Next


__all__ = ["LocalModel"]

_CUT = "The local model did not come to an end within its limit, so nothing was done. Ask for something smaller."
_TOO_LONG = (
    "{path} is too long for the local model to change. An exact replacement needs no model: "
    "replace A by B in {path}"
)
_NO_FILE = "The local model gave no new text for {path}, so nothing was changed."
_SAME = "The local model would leave {path} as it is, so nothing was changed."
_REPEATS = "The local model asks for the same once more; it does not get on. {result}"
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
        """End what still generates; the weights stay for the next session of this process."""
        await self._worker.close()

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`."""
        begin = newest_prompt(request.messages)
        if begin < 0:
            return speaking("Nothing was asked.", self._label, on_delta)
        wish = request.messages[begin].text
        reply = await self._answered(request, begin, wish, on_delta)
        return reply_with_notices(reply, request, on_delta, chinese=is_chinese(wish))

    async def _answered(self, request: ModelRequest, begin: int, wish: str, on_delta: OnDelta) -> AIMessage:
        if not request.tools:
            told = await self._generated(plainly(request.messages, self._context), on_delta)
            return _counted(self._made(told.text.strip() or _CUT, on_delta), told)
        if self._commands_first and (commands := _sure_commands(wish)):
            done = finished_since(request.messages[begin + 1 :])
            step = step_of(commands, request.tool_names, done, chinese=is_chinese(wish))
            if isinstance(step, Ended):
                return speaking(step.text, self._label, on_delta, step.unmet)
            return self._made(step, on_delta)
        following = next_step(taken_since(request.messages[begin + 1 :]))
        return await self._followed(following, wish, request, on_delta)

    async def _followed(self, step: "Next", wish: str, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        match step:
            case Call() | Done():
                return self._made(step if isinstance(step, Call) else step.text, on_delta)
            case Choose():
                return await self._choose(append_notices(wish, request), request, on_delta)
            case Answer(last=last):
                ask = answering(append_notices(wish, request), last, self._context)
                told = await self._generated(ask, on_delta, lambda piece: on_delta(Delta("text", piece)))
                return _counted(self._message(told.text.strip() or last.result), told)
            case Rewrite():
                return await self._rewrite(step, wish, on_delta)
            case _:
                assert_never(step)

    async def _choose(self, wish: str, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        begin = newest_prompt(request.messages)
        taken = taken_since(request.messages[begin + 1 :])
        actions = actions_for(request.tool_names)
        told = await self._generated(choosing(wish, request.messages[:begin], taken, actions), on_delta)
        choice = chosen(told.text, actions) if told.is_whole else None
        if choice is None:
            return _counted(self._made(_CUT, on_delta), told)
        name, arguments = choice
        if name == REPLY:
            return _counted(self._made(arguments["text"].strip() or "…", on_delta), told)
        if name == CHANGE:
            path = arguments["file_path"]
            read = Call("read_file", {"file_path": path})
            return _counted(calling(read, self._label, on_delta, to_change(path)), told)
        call = Call(name, arguments)
        repeated = [one for one in taken if (one.tool, one.arguments) == (name, arguments)]
        step = _REPEATS.format(result=repeated[-1].result) if repeated else call
        return _counted(self._made(step, on_delta), told)

    async def _rewrite(self, step: Rewrite, wish: str, on_delta: OnDelta) -> AIMessage:
        present = whole_text(step.listing)
        ask = None if present is None else rewriting(wish, step.path, present, self._context)
        if ask is None:
            return self._made(_TOO_LONG.format(path=step.path), on_delta)
        told = await self._generated(ask, on_delta)
        text = new_text(told.text) if told.is_whole else None
        if text is None or text == present:
            line = _CUT if not told.is_whole else _NO_FILE if text is None else _SAME
            return _counted(self._made(line.format(path=step.path), on_delta), told)
        write = Call("write_file", {"file_path": step.path, "content": text})
        return _counted(self._made(write, on_delta), told)

    async def _generated(
        self, ask: Ask, on_delta: OnDelta, on_piece: "Callable[[str], None]" = lambda _: None
    ) -> Generated:
        if not self._runtime.is_loaded:
            on_delta(Delta("note", f"Loading {self._label}; the first answer takes some seconds more."))
        return await self._worker.generate(ask, on_piece)

    def _made(self, step: Call | str, on_delta: OnDelta) -> AIMessage:
        if isinstance(step, Call):
            return calling(step, self._label, on_delta)
        return speaking(step, self._label, on_delta)

    def _message(self, text: str) -> AIMessage:
        return speaking(text, self._label, lambda _: None)


def _counted(message: AIMessage, used: Generated) -> AIMessage:
    read, written = used.input_tokens, used.output_tokens
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return message.model_copy(update={"usage_metadata": usage})


def _sure_commands(wish: str) -> tuple[Command, ...]:
    """The commands of a message that leaves no doubt: "run the tests" is no command line, whatever its form."""
    commands = parse(wish)
    if isinstance(commands, NotUnderstood):
        return ()
    return commands if all(_is_sure(command) for command in commands) else ()


def _is_sure(command: Command) -> bool:
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
