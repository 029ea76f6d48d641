import asyncio

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Outcome, Scope
from graph_agent.ports.toolbox import NO_HOOKS
from graph_agent.session.message_input import MessageQueue, PromptHooks


class Slow:
    has_message_hooks = True

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        return f"{thread_id} {source} {mode}"

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
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


class MemoryInbox:
    """Each step takes a while, as on a disk, so that steps of others come between."""

    def __init__(self) -> None:
        self.kept: dict[int, str] = {}

    async def queue(self, thread_id: str, text: str, by: str) -> int:
        await asyncio.sleep(0)
        number = len(self.kept) + 1
        self.kept[number] = f"{thread_id} {by}: {text}"
        return number

    async def waiting(self, thread_id: str) -> list[tuple[int, str]]:
        found = list(self.kept.items())
        await asyncio.sleep(0.001)
        return found

    async def remove(self, thread_id: str, message_id: int) -> bool:
        await asyncio.sleep(0.001)
        return self.kept.pop(message_id, None) is not None

    async def move_to_thread(self, thread_id: str, message_id: int, to: str) -> int | None:
        return await self.queue(to, self.kept.pop(message_id), "") if message_id in self.kept else None

    async def take(self, thread_id: str, message_id: int) -> None:
        del self.kept[message_id]


async def test_what_is_being_sent_neither_waits_nor_is_taken_back_or_handed_over() -> None:
    queue = MessageQueue(MemoryInbox(), "t", "chat")
    first, second = await queue.add("one"), await queue.add("two")

    async with queue.sending_oldest() as oldest:
        waiting = await queue.waiting()
        handed_over = await queue.move(first, "elsewhere")
        answers = [await queue.remove(number) for number in (first, second, second)]

    assert (oldest, waiting, handed_over) == ((1, "t chat: one"), [(2, "t chat: two")], None)
    assert answers == [False, True, False]
    assert await queue.remove(first)


async def test_of_one_who_sends_and_one_who_takes_back_exactly_one_gets_the_message() -> None:
    inbox = MemoryInbox()
    queue = MessageQueue(inbox, "t", "chat")
    sent: list[int] = []

    async def send() -> None:
        async with queue.sending_oldest() as oldest:
            await asyncio.sleep(0.001)
            if oldest is not None:
                sent.append(oldest[0])
                await inbox.take("t", oldest[0])

    for delay in (0.0, 0.0005, 0.001, 0.0015, 0.002, 0.003):
        sent.clear()
        number = await queue.add("x")
        sending = asyncio.create_task(send())
        await asyncio.sleep(delay)
        is_back = await queue.remove(number)
        await sending

        assert (is_back, sent) in ((True, []), (False, [number]))
