"""The chat model on a GGUF file in this process: leads a small model step by step and makes ordinary tool calls.

A small model chooses one action among few, the program runs it, the model answers. A file is changed by reading it
and having the model write it anew. Asked freely for step after step it repeats itself and overwrites what it should
only read. The step is found from the history alone, so a restarted turn continues where it was.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, assert_never

from langchain_core.messages import AIMessage, BaseMessage

from graph_agent.config.model_choice import local_label
from graph_agent.model.local.runtime import Completion, CompletionRequest, LlamaRuntime, Worker
from graph_agent.model.offline.model import (
    Answer,
    call_message,
    finished_calls,
    last_prompt,
    next_step,
    text_message,
)
from graph_agent.model.offline.parser import Command, is_chinese, parse
from graph_agent.model.offline.plan import CallResult, PlannedCall, restore_text
from graph_agent.model.single_model import SingleModel, append_notices, reply_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = [
    "Action",
    "LocalModel",
    "Step",
    "actions_for",
    "answer_prompt",
    "change_notice",
    "choice_prompt",
    "extract_file",
    "instructions",
    "parse_action",
    "plain_prompt",
    "prompt_room",
    "rewrite_prompt",
    "schema_of",
    "step_after",
]

_CUT = "The local model did not finish within its token limit, so nothing was done. Ask for something smaller."
_TOO_LONG = (
    "{path} is too long for the local model to change. An exact replacement needs no model: "
    "replace A by B in {path}"
)
_NO_FILE = "The local model gave no new text for {path}, so nothing was changed."
_UNCHANGED = "The local model would leave {path} as it is, so nothing was changed."
_REPEATED = "The local model asks for the same call again, so the turn ends here. {result}"


class LocalModel(SingleModel):
    """Implements `ChatModel` and `Models`."""

    def __init__(self, path: Path, runtime: LlamaRuntime, *, context: int, commands_first: bool) -> None:
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
        chinese = is_chinese(prompt)
        if request.tools:
            done = finished_calls(request.messages[begin + 1 :])
            # The offline commands come first: they cost nothing, the model takes seconds.
            commands = _certain_commands(prompt) if self._commands_first else ()
            step = next_step(commands, request.tool_names, done, chinese=chinese) if commands else step_after(done)
            reply = await self._take_step(step, request, begin, done, on_delta)
        else:
            completion = await self._generate(plain_prompt(request.messages, self._context), on_delta)
            reply = self._message(completion.text.strip() or _CUT, on_delta, completion)
        return reply_with_notices(reply, request, on_delta, chinese=chinese)

    async def _take_step(
        self, step: "Step", request: ModelRequest, begin: int, done: list[CallResult], on_delta: OnDelta
    ) -> AIMessage:
        prompt = request.messages[begin].text
        match step:
            case PlannedCall():
                return self._message(step, on_delta)
            case Answer(text=text, unmet=unmet):
                return text_message(text, self._label, on_delta, unmet)
            case "choose":
                return await self._choose_action(request, begin, done, on_delta)
            case "answer":
                ask = answer_prompt(append_notices(prompt, request), done[-1], self._context)
                completion = await self._generate(ask, on_delta, lambda piece: on_delta(Delta("text", piece)))
                return self._message(completion.text.strip() or done[-1].text, lambda _: None, completion)
            case "rewrite":
                return await self._rewrite_file(done[-1], prompt, on_delta)
            case _ as never:
                assert_never(never)

    async def _choose_action(
        self, request: ModelRequest, begin: int, finished: list[CallResult], on_delta: OnDelta
    ) -> AIMessage:
        prompt = append_notices(request.messages[begin].text, request)
        actions = actions_for(request.tool_names)
        ask = choice_prompt(prompt, request.messages[:begin], finished, actions)
        completion = await self._generate(ask, on_delta)
        choice = parse_action(completion.text, actions) if completion.is_complete else None
        if choice is None:
            return self._message(_CUT, on_delta, completion)
        name, arguments = choice
        if name == REPLY:
            return self._message(arguments["text"].strip() or "…", on_delta, completion)
        if name == CHANGE:
            path = arguments["file_path"]
            read = PlannedCall("read_file", {"file_path": path})
            return self._message(read, on_delta, completion, change_notice(path))
        same = [call for call in finished if (call.tool, call.arguments) == (name, arguments)]
        if same:
            return self._message(_REPEATED.format(result=same[-1].text), on_delta, completion)
        return self._message(PlannedCall(name, arguments), on_delta, completion)

    async def _rewrite_file(self, read: CallResult, prompt: str, on_delta: OnDelta) -> AIMessage:
        path, present = str(read.arguments.get("file_path", "")), restore_text(read.text)
        ask = None if present is None else rewrite_prompt(prompt, path, present, self._context)
        if ask is None:
            return self._message(_TOO_LONG.format(path=path), on_delta)
        completion = await self._generate(ask, on_delta)
        content = extract_file(completion.text)
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


_PROGRAM = re.compile(r"[\w.-]*[./][\w./-]*|[a-z0-9_+-]+")
_WORDS = frozenset(("the", "a", "an", "all", "my", "it", "this", "that", "tests", "unit"))


def _certain_commands(prompt: str) -> tuple[Command, ...]:
    """The offline commands of a message that leaves no doubt; "run the tests" has the form of one and is none."""
    commands = parse(prompt)
    for command in commands if isinstance(commands, tuple) else ():
        first, new = (next(iter(text.split()), "").lower() for text in (command.text, command.new))
        if command.kind == "run" and (first in _WORDS or not _PROGRAM.fullmatch(first)):
            return ()
        if command.kind == "replace" and not _WORDS.isdisjoint((first, new)):
            return ()
    return commands if isinstance(commands, tuple) else ()


CHANGE = "change_file"
"""Not a tool: the file is read, then written anew."""
REPLY = "reply"
"""Not a tool: an answer in words."""


class Action(NamedTuple):
    """One thing the model may do."""

    name: str
    arguments: tuple[str, ...]
    """All of them texts, all required."""
    description: str
    tools: tuple[str, ...]
    """Tools it needs."""


_ACTIONS: tuple[Action, ...] = (
    Action("ls", ("path",), 'list the files of a folder; "." is the whole project', ("ls",)),
    Action("glob", ("pattern",), "find files by name, such as **/*.py", ("glob",)),
    Action("grep", ("pattern",), "find the files that contain a word", ("grep",)),
    Action("read_file", ("file_path",), "look into a file, to show or explain it", ("read_file",)),
    Action("write_file", ("file_path", "content"), "make a new file with this content", ("write_file",)),
    Action(CHANGE, ("file_path",), "change, fix or extend a file that exists", ("read_file", "write_file")),
    Action("bash", ("command",), "run a shell command", ("bash",)),
    Action(REPLY, ("text",), "answer in words, where no file and no command is needed", ()),
)
_TASK = (
    "You are a coding agent in a folder of files. Choose the one action that comes first for what the user asks, "
    "and answer with its JSON object only:"
)
_EXAMPLES: tuple[tuple[str, dict[str, str]], ...] = (
    ("what does src/main.py do?", {"tool": "read_file", "file_path": "src/main.py"}),
    ("where is parse_args used", {"tool": "grep", "pattern": "parse_args"}),
    ("fix the typo in notes.md", {"tool": CHANGE, "file_path": "notes.md"}),
    ("add a class Tree to forest.py", {"tool": CHANGE, "file_path": "forest.py"}),
    ("show the git log", {"tool": "bash", "command": "git log --oneline"}),
    ("hello", {"tool": REPLY, "text": "Hello! What shall I do?"}),
)


def actions_for(tools: frozenset[str]) -> tuple[Action, ...]:
    """The actions that are possible with the tools on offer."""
    return tuple(action for action in _ACTIONS if tools.issuperset(action.tools))


def schema_of(actions: Sequence[Action]) -> dict[str, Any]:
    """The JSON schema with one object per action; output decoded under it is always one complete action."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "tool": {"const": action.name},
                    **{name: {"type": "string"} for name in action.arguments},
                },
                "required": ["tool", *action.arguments],
                "additionalProperties": False,
            }
            for action in actions
        ]
    }


def instructions(actions: Sequence[Action]) -> str:
    """The system message: the actions, with examples."""
    names = {action.name for action in actions}
    shapes = [
        f"{json.dumps({'tool': action.name, **dict.fromkeys(action.arguments, '...')})} {action.description}"
        for action in actions
    ]
    examples = [f"{request} -> {json.dumps(done)}" for request, done in _EXAMPLES if done["tool"] in names]
    return "\n".join([_TASK, *shapes, "Examples:", *examples])


def parse_action(text: str, actions: Sequence[Action]) -> tuple[str, dict[str, str]] | None:
    """The chosen action with its arguments; None where the text holds no complete one."""
    try:
        choice = json.loads(text)
    except ValueError:
        return None
    if not isinstance(choice, Mapping):
        return None
    for action in actions:
        arguments = {name: value for name in action.arguments if isinstance(value := choice.get(name), str)}
        if choice.get("tool") == action.name and len(arguments) == len(action.arguments):
            return action.name, arguments
    return None


Step = PlannedCall | Answer | Literal["choose", "answer", "rewrite"]
"""A call or the end of the turn; else the model chooses an action, answers from the last result, or rewrites."""
_MAX_CHOICES = 3
_NOT_RUN = "Not run"
"""What the result of a call begins with that was rejected, cancelled or stopped."""


def change_notice(path: str) -> str:
    """The text of the message that reads a file in order to change it; it marks the purpose in the history."""
    return f"To change {path}, I read it first."


def step_after(finished: Sequence[CallResult]) -> Step:
    """What comes after the calls of this turn."""
    if not finished:
        return "choose"
    *before, last = finished
    if last.is_error:
        return _step_after_failure(before, last)
    if last.tool == "write_file":
        return Answer(f"Done. {last.text}")
    if last.tool != "read_file":
        return "answer"
    path = str(last.arguments.get("file_path", ""))
    if last.message.startswith(change_notice(path)):
        return "rewrite"
    # A file that had to be read before it could be overwritten is now written.
    writes = [call for call in finished if call.tool == "write_file" and call.arguments.get("file_path") == path]
    return PlannedCall("write_file", writes[-1].arguments) if writes else "answer"


def _step_after_failure(before: Sequence[CallResult], last: CallResult) -> Step:
    failed = Answer(f"Not done. {last.text}")
    if last.text.startswith(_NOT_RUN):
        return Answer(last.text)
    if last.tool == "bash":
        return "answer"
    if last.tool == "write_file":
        must_read = "read it" in last.text and not any(call.tool == "read_file" for call in before)
        return PlannedCall("read_file", {"file_path": last.arguments.get("file_path")}) if must_read else failed
    is_repeated = any((call.tool, call.arguments) == (last.tool, last.arguments) for call in before)
    return failed if is_repeated or len(before) + 1 >= _MAX_CHOICES else "choose"


_CHARACTERS_PER_TOKEN = 3
_CHOICE_TOKENS = 800
_ANSWER_TOKENS = 500
_OVERHEAD_TOKENS = 150
_MAX_REQUEST = 4_000
_EARLIER_MESSAGES = 4
_EARLIER_CHARACTERS = 300

_ANSWER = "You are a coding agent. Answer the user briefly and plainly, based on the result below."
_REWRITE = (
    "You edit files. Answer with the whole new text of the file between two lines of three backquotes, and nothing "
    "else. Change only what is asked for and keep all other lines as they are."
)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


def choice_prompt(
    prompt: str, earlier: Sequence[BaseMessage], failed: Sequence[CallResult], actions: Sequence[Action]
) -> CompletionRequest:
    """Which action comes next; the end of the conversation and the calls that failed are included in short."""
    prompt = _clip(prompt, _MAX_REQUEST)
    for call in failed:
        result = _clip(call.text, _EARLIER_CHARACTERS)
        prompt += f"\n\n{call.tool} {call.arguments} failed: {result} Choose another action."
    roles = {"human": "user", "ai": "assistant"}
    spoken = [one for one in earlier if one.type in roles and one.text.strip()][-_EARLIER_MESSAGES:]
    begin = next((position for position, message in enumerate(spoken) if message.type == "human"), 0)
    recent = [_message(roles[one.type], _clip(one.text, _EARLIER_CHARACTERS)) for one in spoken[begin:]]
    messages = [_message("system", instructions(actions)), *recent, _message("user", prompt)]
    return CompletionRequest(messages, _CHOICE_TOKENS, schema_of(actions))


def answer_prompt(prompt: str, last: CallResult, context: int) -> CompletionRequest:
    """An answer in words, from the result of the last call."""
    result = _clip(last.text, max(500, prompt_room(context, _ANSWER_TOKENS) - len(prompt)))
    text = f"{_clip(prompt, _MAX_REQUEST)}\n\nResult of {last.tool} {last.arguments}:\n{result}"
    return CompletionRequest([_message("system", _ANSWER), _message("user", text)], _ANSWER_TOKENS)


def rewrite_prompt(prompt: str, path: str, content: str, context: int) -> CompletionRequest | None:
    """The new text of a file; None where reading and writing it does not fit into the context window."""
    text = f"File {path}:\n```\n{content}```\n\n{prompt}"
    tokens = len(content) // _CHARACTERS_PER_TOKEN + 200
    if len(text) > prompt_room(context, tokens):
        return None
    return CompletionRequest([_message("system", _REWRITE), _message("user", text)], tokens)


def plain_prompt(messages: Sequence[BaseMessage], context: int) -> CompletionRequest:
    """A request without tools, such as a summary: instructions and newest message, as far as they fit."""
    room = prompt_room(context, _ANSWER_TOKENS)
    system = [_message("system", _clip(one.text, room // 2)) for one in messages[:1] if one.type == "system"]
    prompt = _clip(messages[-1].text, room - sum(len(one["content"]) for one in system))
    return CompletionRequest([*system, _message("user", prompt)], _ANSWER_TOKENS)


def extract_file(reply: str) -> str | None:
    """The file in the reply; None where it is not clearly there."""
    found = _FENCED.search(reply)
    if found is None:
        return None
    return found[1] if not found[1] or found[1].endswith("\n") else found[1] + "\n"


def prompt_room(context: int, answer_tokens: int) -> int:
    """Characters that a prompt may have besides its answer."""
    return max(0, (context - answer_tokens - _OVERHEAD_TOKENS) * _CHARACTERS_PER_TOKEN)


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [... cut]"
