import asyncio

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Outcome, Scope
from graph_agent.ports.toolbox import NO_HOOKS
from graph_agent.session.message_input import PromptHooks


class Slow:
    has_message_hooks = True

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        return f"{thread_id} {source} {mode}"

    async def prompted(self, thread_id: str, text: str, mode: str) -> str:
        await asyncio.sleep(60)
        return ""

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        return ""

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """Nothing is wanted."""


async def test_what_is_said_at_the_beginning_is_told_once() -> None:
    prompting = PromptHooks(Slow(), "t1")

    await prompting.session_started(is_new=True, mode="plan")

    assert (prompting.take_greeting(), prompting.take_greeting()) == ("t1 startup plan", "")


async def test_a_stop_ends_a_hook_that_runs_and_nothing_else() -> None:
    prompting = PromptHooks(Slow(), "t1")
    before = prompting.stop()
    asking = asyncio.create_task(prompting.before_message("hi", "default"))
    await asyncio.sleep(0)

    during = prompting.stop()

    assert (before, during, await asking, prompting.stop()) == (False, True, None, False)


async def test_a_stop_ahead_of_a_turn_lets_no_hook_begin_and_from_then_on_is_the_turns() -> None:
    prompting = PromptHooks(Slow(), "t1")

    with prompting.preparing_turn():
        stopped = prompting.stop(), await prompting.before_message("hi", "default"), prompting.is_stopped
    with prompting.preparing_turn():
        anew = prompting.is_stopped
        prompting.turn_begins()
        turn = prompting.stop()

    assert (stopped, anew, turn) == ((True, None, True), False, False)


async def test_without_hooks_no_message_has_to_be_asked_about() -> None:
    prompting = PromptHooks(NO_HOOKS, "t1")

    assert (prompting.read_messages, await prompting.before_message("hi", "default")) == (False, "")
