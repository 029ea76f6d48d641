"""A model for crash trials: decides from the history alone, and invents new call ids each time, as a real one does.

Each call carries a marker that its effect leaves in the world; a history that no strict server would take is noted.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage

from graph_agent.errors import InvalidHistory
from graph_agent.graph.compaction import is_summary
from graph_agent.graph.history import require_valid
from graph_agent.ports import Delta, ModelRequest, OnDelta
from tests.crash.world import World

__all__ = [
    "ALWAYS",
    "BACKGROUND",
    "EDITED",
    "ENDLESS",
    "QUESTIONS",
    "SCENES",
    "SMALL_EFFECTS",
    "TASK",
    "PlayModel",
    "Scene",
    "Wanted",
    "marker_in",
    "turn_of",
    "words_for",
]

ALWAYS = "m000-a11da115"
"""The marker of every call that is allowed always: they are the same to the byte, and each leaves its effect."""

TASK = 9
"""Number of the turn of each sub-agent."""

ENDLESS = "sleep 33.77"
"""What commands in the background do; no other does."""

EDITED = "X"
"""What an edit by the person adds to a marker."""


HOME_PAGE = "http://web.site/"
"""Stands for the address of the world's own site."""

_WRITES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "ask_user": lambda marker: {"question": f"{marker}?", "options": ["yes", "no"]},
    "save_memory": lambda marker: {"fact": f"the sign is {marker}"},
    "todo_write": lambda marker: {"items": [{"content": marker}]},
    "mcp__notes__note": lambda marker: {"text": marker},
    "web_fetch": lambda marker: {"url": f"{HOME_PAGE}{marker}"},
    "new_task": lambda marker: {"prompt": f"do what {marker} says"},
}
"""What the model writes for tools that neither run commands nor touch files of the workspace."""


@dataclass(frozen=True)
class Wanted:
    """One call of a scene, and what the person says to it."""

    tool: str
    answer: str = ""
    """approve, always, reject, edit, answer (in words), stop (the turn, at the question); empty for calls that need
    none."""
    fails: bool = False
    stays: float = 0.0
    """Seconds the command goes on after its effect."""
    says: str = ""
    """A further command that it ends with."""
    in_background: bool = False
    """It goes on until it is ended."""

    def arguments(self, marker: str) -> dict[str, Any]:
        """What the model writes."""
        if self.answer == "always":
            return {"command": f"./note {marker}"}
        if self.in_background:
            return {"command": f"echo {marker} | tee -a effects; {ENDLESS}", "background": True}
        if self.tool == "bash":
            end = "false" if self.fails else f"sleep {self.stays}" if self.stays else self.says or "true"
            return {"command": f"echo {marker} >> effects; {end}"}
        if self.tool == "write_file":
            return {"file_path": f"{marker}.txt", "content": f"{marker}\n"}
        writes = _WRITES.get(self.tool)
        return writes(marker) if writes else {"file_path": "read.txt"}


@dataclass(frozen=True)
class Scene:
    """Turns; each turn is a list of model messages, each message a list of calls."""

    name: str
    turns: tuple[tuple[tuple[Wanted, ...], ...], ...]
    is_answered_elsewhere: bool = False
    """Approvals are given through the command for other processes."""
    stops_running: bool = False
    """The person stops the turn once its command has had its effect."""
    goes_back: bool = False
    """When all is over, some earlier checkpoint is taken up again, once, and played on from there."""
    keep_turns: int = 50
    """Turns that stay when the thread prunes itself while idle."""
    rewinds: bool = False
    """When all is over, conversation and files are put back to some earlier checkpoint, once, and played on."""
    has_server: bool = False
    """A server of tools notes what it is started where commands leave their effects."""
    fetches: bool = False
    """There is a web site that counts what it is asked for."""
    in_the_open: bool = False
    """Its commands run without a sandbox: with one they die with their agent."""
    window: int | None = None
    """Tokens the model takes in; so few that the conversation is compacted on the way."""
    forks: bool = False
    """When all is over, the thread is forked at some checkpoint, once, and the fork is played on."""
    is_hooked: bool = False
    """Hooks look on at each call and each end of a turn, and say a word to each result."""
    queues: bool = False
    """Messages wait in the inbox, a hook reads each, and behind it waits one that is taken back."""
    task: tuple[tuple[Wanted, ...], ...] = ()
    """What each sub-agent's turn is, as one of `turns`."""

    def messages(self, turn: int) -> tuple[tuple[Wanted, ...], ...]:
        """The messages of a turn with this number."""
        return self.task if turn == TASK else self.turns[turn]


_READ = Wanted("read_file")
_BASH, _WRITE = Wanted("bash", "approve"), Wanted("write_file", "approve")
_ALWAYS = Wanted("bash", "always")
_QUESTION = Wanted("ask_user", "answer")
_SLOW = Wanted("bash", "approve", stays=20)

_NOTED = Wanted("mcp__notes__note", "approve")
_FETCHED, _PLANNED, _REMEMBERED = Wanted("web_fetch"), Wanted("todo_write"), Wanted("save_memory")

SMALL_EFFECTS = (
    Scene(
        "remembered and planned",
        (((_PLANNED, _REMEMBERED, _READ), (_PLANNED,)), ((_REMEMBERED, _PLANNED), (_REMEMBERED,))),
    ),
    Scene(
        "noted by a server",
        (((_NOTED, _READ, Wanted("mcp__notes__note", "reject")), (_NOTED,)), ((_NOTED, _NOTED),)),
        has_server=True,
    ),
    Scene("fetched from the web", (((_FETCHED, _READ, _FETCHED), (_FETCHED,)), ((_FETCHED,),)), fetches=True),
)
"""Effects that are no commands and no files of the workspace."""

QUESTIONS = Scene("asked by the model", (((_READ, _QUESTION, _BASH), (_QUESTION,)), ((_QUESTION,),)))
"""Its questions are answered in words."""

_STARTED = Wanted("bash", "approve", in_background=True)

BACKGROUND = Scene(
    "in the background",
    (
        ((_STARTED,), (Wanted("bash_output"),), (Wanted("bash_kill"),)),
        ((_STARTED, _READ), (Wanted("bash_output"),)),
    ),
    in_the_open=True,
)
"""What its last turn starts is left running when the session ends."""

_BULKY = Wanted("bash", "approve", says="seq 250")
COMPACTED = Scene(
    "compacted on the way",
    (((_BULKY, _READ), (_BASH, _READ)), ((_WRITE, _BULKY), (_READ,)), ((_BASH, _READ), (_READ,))),
    goes_back=True,
    window=4_096,
)
"""Its instructions and tools alone are more than the window: a few steps of conversation are all that fits."""

_TASK = Wanted("new_task")
SUB_AGENTS = Scene(
    "sub-agents",
    (((_TASK, _READ, _TASK), (_BASH,)), ((_TASK,),)),
    task=((_WRITE, _BASH, _READ),),
)
"""Two work at once, and each asks."""

_FAMILY_TURNS = (((_READ,),), ((_TASK, _TASK), (_WRITE,)))
_OF_EACH = ((_WRITE, _BASH), (_READ,))
FAMILIES = (
    Scene("sub-agents rewound with their parent", _FAMILY_TURNS, task=_OF_EACH, rewinds=True),
    Scene("sub-agents forked with their parent", _FAMILY_TURNS, task=_OF_EACH, forks=True),
    Scene("sub-agents left behind by an earlier checkpoint", _FAMILY_TURNS, task=_OF_EACH, goes_back=True),
)
"""What becomes of sub-agents when their parent stands elsewhere."""

SCENES: tuple[Scene, ...] = (
    Scene(
        "approve, auto and reject in one message",
        (((_READ, _BASH, Wanted("bash", "reject"), _READ),), ((_WRITE,),)),
    ),
    Scene("serial writes", (((_WRITE, _WRITE), (_WRITE,)),)),
    Scene("parallel reads", (((_READ, _READ, _READ), (_READ,)),)),
    Scene("failing tool", (((Wanted("bash", "approve", fails=True), _READ), (_BASH,)),)),
    Scene("edited arguments", (((Wanted("bash", "edit"), _READ),),)),
    Scene(
        "answers from another process",
        (((_BASH, Wanted("bash", "reject")), (_WRITE,)),),
        is_answered_elsewhere=True,
    ),
    Scene("stopped at the question", (((Wanted("bash", "stop"), _READ),), ((_BASH,),))),
    Scene("stopped while a command runs", (((_SLOW, _BASH),), ((_READ,),)), stops_running=True),
    Scene("allowed always", (((_ALWAYS, _READ), (_ALWAYS,)), ((_ALWAYS,),))),
    QUESTIONS,
    BACKGROUND,
    Scene("taken up again from an earlier checkpoint", (((_READ, _BASH, _WRITE),), ((_BASH,),)), goes_back=True),
    Scene("rewound with its files", (((_READ, _BASH, _WRITE),), ((_WRITE, _WRITE),)), rewinds=True),
    Scene("forked", (((_READ, _BASH, _WRITE),), ((_BASH,),)), forks=True),
    Scene(
        "pruned while idle and resumed",
        (((_BASH,),), ((_WRITE,),), ((_READ, _BASH),)),
        keep_turns=1,
        goes_back=True,
    ),
    Scene("looked on by hooks", (((_READ, _BASH, _WRITE), (_BASH,)), ((_WRITE, _READ),)), is_hooked=True),
    Scene("queued and taken back", (((_READ, _BASH),), ((_WRITE,),), ((_READ,),)), queues=True, is_hooked=True),
    *SMALL_EFFECTS,
    COMPACTED,
    SUB_AGENTS,
    *FAMILIES,
)


class PlayModel:
    """Plays a scene."""

    label = "play"

    def __init__(self, scene: Scene, world: World, point: Callable[[str], None]) -> None:
        self._scene = scene
        self._world = world
        self._point = point

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """Continue where the history stands."""
        messages: Sequence[AnyMessage] = list(request.messages)  # type: ignore[arg-type]  # what the state holds
        try:
            require_valid(messages)
        except InvalidHistory as error:
            self._world.note("invalid history", error=str(error))
        if not request.tools:
            return self._summary(messages[-1].text)
        turn, asked = turn_of(messages), _asked_since(messages)
        self._world.note("model asked", turn=turn, message=asked)
        self._point("model asked")
        wanted = self._scene.messages(turn)
        if asked >= len(wanted):
            return AIMessage(f"turn {turn} is over")
        calls = []
        for position, call in enumerate(wanted[asked]):
            marker = f"m{turn}{asked}{position}-{uuid4().hex[:8]}" if call.answer != "always" else ALWAYS
            arguments = self._arguments(call, marker, messages)
            calls.append({"id": f"call_{turn}-{asked}-{uuid4().hex}", "name": call.tool, "args": arguments})
            on_delta(Delta("tool_call", json.dumps(arguments), position, call.tool))
        await asyncio.sleep(0)  # A read may begin before the reply is whole.
        return AIMessage("", tool_calls=calls)

    def _summary(self, quoted: str) -> AIMessage:
        mark = quoted.split(maxsplit=1)[0]
        self._world.note("summary asked", of=hashlib.sha256(quoted.replace(mark, "").encode()).hexdigest())
        self._point("summary asked")
        return AIMessage("what was done, summarized")

    def _arguments(self, call: Wanted, marker: str, messages: Sequence[AnyMessage]) -> dict[str, Any]:
        if call.tool in ("bash_output", "bash_kill"):
            return {"id": _newest_shell(messages)}
        arguments = call.arguments(marker)
        if call.tool == "web_fetch":
            return {"url": arguments["url"].replace(HOME_PAGE, f"http://127.0.0.1:{self._world.port}/")}
        return arguments


def turn_of(messages: Sequence[AnyMessage]) -> int:
    """Number of the turn whose message is the newest; -1 before the first."""
    said = [message.text for message in messages if message.type == "human" and not is_summary(message)]
    if said and said[-1].startswith("You are a sub-agent"):
        return TASK
    return int(said[-1].split()[1]) if said else -1


def _asked_since(messages: Sequence[AnyMessage]) -> int:
    """How many messages of the model this turn has: of those that stand, the newest one's calls say its number."""
    turn, begin = turn_of(messages), 0
    for message in messages:
        if message.type == "ai":
            for call in message.tool_calls:
                of, number, _ = str(call["id"]).removeprefix("call_").split("-")
                begin = int(number) + 1 if int(of) == turn else begin
    return begin


def _newest_shell(messages: Sequence[AnyMessage]) -> str:
    started = re.findall(r"in the background as (sh\d+)", "\n".join(str(message.content) for message in messages))
    return started[-1] if started else "none"


_MARKED = ("command", "file_path", "question", "fact", "items", "content", "text", "url")
"""Arguments that may carry a marker."""


def words_for(marker: str) -> str:
    """What the person answers to the question with this marker."""
    return f"to {marker} the person says yes"


def marker_in(arguments: Mapping[str, Any]) -> str:
    """The marker that a call's arguments carry, without the sign of an edit; empty where there is none."""
    text = next((str(arguments[name]) for name in _MARKED if name in arguments), "")
    found = re.search(r"\bm\d{3}-[0-9a-f]{8}", text)
    return found[0] if found else ""
