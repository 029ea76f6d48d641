"""Hooks around real turns: what they may stop, what they never change, and what a kill within one leaves behind."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.calls import ToolCallInfo
from graph_agent.errors import MessageBlocked
from graph_agent.ports import Outcome, PreparedCall, Scope
from graph_agent.ports.toolbox import HookedCall
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import Stage

_READ = [calls(("r", "read_a")), text("done")]


class Spoken:
    """Hooks that say what a test wants, and may stay within themselves until they are killed."""

    has_message_hooks = True

    def __init__(self, objection: str = "", remark: str = "", stays_in: str = "", blocks: str = "") -> None:
        self.objection, self.remark, self.stays_in, self.blocks = objection, remark, stays_in, blocks
        self.changes: dict[str, dict[str, Any]] = {}
        """By tool, the arguments that its calls get."""
        self.ran: list[str] = []
        """Hooks of calls and turns."""
        self.heard: list[str] = []
        """Other hooks."""
        self.entered = asyncio.Event()

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        await self._enter(f"session {source}")
        return "[greeting]" if self.remark else ""

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        await self._enter(f"message {text}")
        if text == self.blocks:
            raise MessageBlocked(f"not {text}")
        return self.remark

    async def call_requested(self, call: PreparedCall, scope: Scope, call_id: str, attempt: int) -> HookedCall:
        await self._enter(f"requested {call_id}")
        if call.tool_name not in self.changes:
            return HookedCall(call.arguments)
        return HookedCall(self.changes[call.tool_name], "the hook 'fix'")

    async def approval_answered(self, call: ToolCallInfo, answer: Mapping[str, Any], scope: Scope) -> None:
        await self._enter(f"answered {call['call_id']}: {answer['kind']} of {call['arguments']}")

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        await self._enter(f"before {call['call_id']}")
        return self.objection

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        await self._enter(f"after {call['call_id']}: {outcome.status}")
        return self.remark

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        await self._enter(f"turn {status}: {answer}")

    async def _enter(self, what: str) -> None:
        others = ("session", "message", "requested", "answered")
        (self.heard if what.startswith(others) else self.ran).append(what)
        if self.stays_in and what.startswith(self.stays_in):
            self.stays_in = ""
            self.entered.set()
            await asyncio.sleep(3600)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "a.db", ScriptedModel())


async def _killed_in(stage: Stage, hooks: Spoken) -> None:
    """A life that ends within the hook it stays in."""
    stage.hooks = hooks
    async with stage.open_session() as session:
        sending = asyncio.create_task(session.send("go"))
        await hooks.entered.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_a_hook_that_objects_keeps_the_call_from_running_and_tells_the_model_why(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("r", "read_a")), text("done"))
    stage.hooks = hooks = Spoken(objection="blocked by the hook 'x': not now")
    async with stage.open_session() as session:
        rest = await session.send("go")

    assert (rest.status, stage.toolbox.ran, "tool_call_started" in stage.types()) == ("done", [], False)
    assert stage.model.sent()[-1] == ("tool", "Error: blocked by the hook 'x': not now")
    assert hooks.ran == ["before r", "turn done: done"]


async def test_what_a_hook_says_of_a_result_stands_behind_it_and_changes_nothing(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("r", "read_a"), ("f", "fail_b")), text("done"))
    stage.hooks = Spoken(remark="[The hook says: tidy up]")
    async with stage.open_session() as session:
        await session.send("go")

    told = [words for role, words in stage.model.sent() if role == "tool"]
    results = [event.output for event in stage.events if event.type == "tool_result"]
    assert told == ["result of r\n[The hook says: tidy up]", "partial\nError: it broke\n[The hook says: tidy up]"]
    assert results == ["result of r", "partial"]


@pytest.mark.parametrize(
    ("hook", "replies", "ran", "heard", "told"),
    [
        ("before", _READ, ["before r", "after r: success", "turn done: done"], 1, ("tool", "result of r\n[seen]")),
        ("after", _READ, ["after r: success", "turn done: done"], 1, ("tool", "result of r\n[seen]")),
        ("turn", [text("done")], [], 0, ("human", "go\n\n[seen]")),
    ],
)
async def test_after_a_kill_within_a_hook_the_turn_continues_and_a_read_runs_once(
    stage: Stage, hook: str, replies: list[AIMessage], ran: list[str], heard: int, told: tuple[str, str]
) -> None:
    stage.model = ScriptedModel(*replies)
    await _killed_in(stage, Spoken(remark="[seen]", stays_in=hook))

    stage.hooks = later = Spoken(remark="[seen]")
    async with stage.open_session() as session:
        rest = await session.start()

    assert (rest.status, rest.answer, rest.questions, later.ran) == ("done", "done", (), ran)
    assert (len(stage.toolbox.ran), stage.model.sent()[-1]) == (heard, told)


async def test_killed_in_a_hook_before_it_a_write_comes_back_as_never_started(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("done"))
    stage.hooks = hooks = Spoken(stays_in="before")
    async with stage.open_session() as session:
        [asked] = (await session.send("go")).questions
        await session.decide(asked.question, "approve")
        proceeding = asyncio.create_task(session.proceed())
        await hooks.entered.wait()
        proceeding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await proceeding

    async with stage.open_session() as session:
        [broken] = (await session.start()).questions

    assert (broken.question.kind, broken.call.get("reason"), stage.toolbox.ran) == ("recovery", "never_started", [])


@pytest.mark.parametrize(
    ("hook", "replies", "status", "answer", "calls_ran", "ran"),
    [
        ("requested", _READ, "stopped", "", [], []),
        ("before", _READ, "stopped", "", [], ["before r"]),
        ("after", _READ, "stopped", "", [("r", {})], ["before r", "after r: success"]),
        ("turn", [text("the answer")], "done", "the answer", [], ["turn done: the answer"]),
    ],
)
async def test_a_stop_within_a_hook_stops_what_has_not_ended(
    stage: Stage, *, hook: str, replies: list[AIMessage], status: str, answer: str, calls_ran: Any, ran: list[str]
) -> None:
    stage.model = ScriptedModel(*replies)
    stage.hooks = hooks = Spoken(stays_in=hook)
    async with stage.open_session() as session:
        sending = asyncio.create_task(session.send("go"))
        await hooks.entered.wait()
        rest = await session.stop()
        await sending

    assert (rest.status, rest.answer, stage.toolbox.ran, hooks.ran) == (status, answer, calls_ran, ran)


async def test_what_hooks_say_of_a_message_stands_behind_it_and_is_not_taken_for_the_users_words(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    stage.hooks = hooks = Spoken(remark="[the branch is main]")
    async with stage.open_session() as session:
        await session.start()
        await session.send("go", "[shared]")
        await session.send("on")
    async with stage.open_session() as session:
        await session.start()

    said = [words for role, words in stage.model.sent() if role == "human"]
    assert said == ["go\n\n[shared]\n\n[the branch is main]\n\n[greeting]", "on\n\n[the branch is main]"]
    assert hooks.heard == ["session startup", "message go", "message on", "session resume"]


async def test_a_message_that_a_hook_keeps_back_is_not_sent_and_does_not_wait(stage: Stage) -> None:
    stage.model = ScriptedModel(text("fine"))
    stage.hooks = Spoken(blocks="secret")
    async with stage.open_session() as session:
        await session.queue("secret")
        with pytest.raises(MessageBlocked, match="not secret"):
            await session.send_queued()
        with pytest.raises(MessageBlocked):
            await session.send("secret")
        waiting = await session.queued()
        rest = await session.send("open")

    assert (waiting, rest.answer) == ([], "fine")
    assert [words for role, words in stage.model.sent() if role == "human"] == ["open"]


async def test_a_message_whose_hook_was_killed_waits_and_is_sent_once(stage: Stage) -> None:
    stage.model = ScriptedModel(text("fine"))
    hooks = Spoken(stays_in="message")
    await _killed_in(stage, hooks)
    async with stage.open_session() as session:
        await session.start()
        rest = await session.send_queued()
        left = await session.send_queued()

    assert (rest and rest.answer, left) == ("fine", None)
    assert [words for role, words in stage.model.sent() if role == "human"] == ["go"]
    assert hooks.heard == ["message go", "session startup", "message go"]


async def test_a_stop_ends_the_hook_of_a_message_which_then_waits(stage: Stage) -> None:
    stage.model = ScriptedModel(text("fine"))
    stage.hooks = hooks = Spoken(stays_in="message go")
    async with stage.open_session() as session:
        earlier = await session.send("before")
        sending = asyncio.create_task(session.send("go"))
        await hooks.entered.wait()
        stopped = await session.stop()
        sent = await sending
        waiting = [words for _, words in await session.queued()]

    assert (earlier.answer, waiting, len(stage.model.requests)) == ("fine", ["go"], 1)
    assert [(one.status, one.answer) for one in (stopped, sent)] == [("stopped", ""), ("stopped", "")]


async def _ask_and_close(stage: Stage, hooks: Spoken) -> dict[str, Any]:
    """The arguments and the reason of the one question that is open, in a process that ends then."""
    stage.hooks = hooks
    async with stage.open_session() as session:
        started = await session.start()
        [asked] = (started if started.questions else await session.send("go")).questions
    return {
        "arguments": asked.call["arguments"],
        "reason": asked.question.reason,
        "digest": asked.question.args_digest,
    }


async def test_what_a_hook_changes_is_judged_asked_and_approved_as_changed_whatever_is_killed(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a", {"file": "a"})), text("done"))
    stays, changes = Spoken(stays_in="requested"), Spoken()
    stays.changes = changes.changes = {"write_a": {"file": "b"}}

    await _killed_in(stage, stays)
    asked = await _ask_and_close(stage, changes)
    other = Spoken()
    other.changes = {"write_a": {"file": "c"}}
    still = await _ask_and_close(stage, other)
    ran_before = list(stage.toolbox.ran)
    async with stage.open_session() as session:
        [question] = (await session.start()).questions
        await session.decide(question.question, "approve")
        await session.proceed()

    assert (asked["arguments"], still) == ({"file": "b"}, asked)
    assert asked["reason"] == "The arguments were changed by the hook 'fix'. it writes"
    assert (ran_before, stage.toolbox.ran) == ([], [("w", {"file": "b"})])
    told = "The arguments were changed by the hook 'fix' to {'file': 'b'}.\nresult of w"
    assert stage.model.sent()[-1] == ("tool", told)
    assert (changes.heard[-1], other.heard[-1]) == ("requested w", "answered w: approve of {'file': 'b'}")


@pytest.mark.parametrize(
    ("tool", "status", "ran"),
    [("read_a", "done", True), ("write_a", "awaiting_approval", False), ("deny_a", "done", False)],
)
async def test_a_changed_call_needs_what_any_call_needs(stage: Stage, tool: str, status: str, ran: bool) -> None:
    stage.model = ScriptedModel(calls(("x", tool, {"file": "a"})), text("done"))
    stage.hooks = hooks = Spoken()
    hooks.changes = {tool: {"file": "b"}}
    async with stage.open_session() as session:
        rest = await session.send("go")

    assert (rest.status, stage.toolbox.ran) == (status, [("x", {"file": "b"})] if ran else [])
