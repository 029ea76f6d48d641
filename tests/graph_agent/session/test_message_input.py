import asyncio
import contextlib

from graph_agent.ports.toolbox import NO_HOOKS
from graph_agent.session.message_input import MessageQueue, PromptHooks


class Slow(type(NO_HOOKS)):  # type: ignore[misc]  # the class of a constant
    has_message_hooks = True

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        return f"{thread_id} {source} {mode}"

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        await asyncio.sleep(60)
        return ""


async def test_the_output_of_a_session_start_hook_is_taken_once() -> None:
    hooks = PromptHooks(Slow(), "t1")

    await hooks.session_started(is_new=True, mode="plan")

    assert (hooks.take_greeting(), hooks.take_greeting()) == ("t1 startup plan", "")


async def test_a_stop_ends_a_running_hook_and_nothing_else() -> None:
    hooks = PromptHooks(Slow(), "t1")
    before = hooks.stop()
    answers = []
    for preparing in (contextlib.nullcontext, hooks.preparing_turn):
        with preparing():
            asking = asyncio.create_task(hooks.before_message("hi", "default"))
            await asyncio.sleep(0)
            answers.append((hooks.stop(), await asking))

    assert (before, answers, hooks.stop()) == (False, [(False, None), (True, None)], False)


async def test_a_stop_before_a_turn_starts_no_hook_and_afterwards_it_is_for_the_turn() -> None:
    hooks = PromptHooks(Slow(), "t1")

    with hooks.preparing_turn():
        stopped = hooks.stop(), await hooks.before_message("hi", "default"), hooks.is_stopped
    with hooks.preparing_turn():
        is_still_stopped = hooks.is_stopped
        hooks.turn_begins()
        is_before_turn = hooks.stop()

    assert (stopped, is_still_stopped, is_before_turn) == ((True, None, True), False, False)


async def test_without_hooks_a_message_is_sent_unread() -> None:
    hooks = PromptHooks(NO_HOOKS, "t1")

    assert (hooks.read_messages, await hooks.before_message("hi", "default")) == (False, "")


class MemoryInbox:
    """Each step takes a while, as on a disk, so that steps of others come between."""

    def __init__(self) -> None:
        self.kept: dict[int, str] = {}

    async def queue(self, thread_id: str, text: str, by: str, *, is_urgent: bool = False) -> int:
        await asyncio.sleep(0)
        number = len(self.kept) + 1
        self.kept[number] = f"{thread_id} {by}: {text}"
        return number

    async def mark_urgent(self, thread_id: str) -> int:
        return len(self.kept)

    async def waiting(self, thread_id: str, *, only_urgent: bool = False) -> list[tuple[int, str]]:
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


async def test_a_message_that_is_being_sent_cannot_be_removed_or_moved() -> None:
    queue = MessageQueue(MemoryInbox(), "t", "chat")
    first, second = await queue.add("one"), await queue.add("two")

    async with queue.sending_oldest() as oldest:
        waiting = await queue.waiting()
        moved = await queue.move(first, "elsewhere")
        answers = [await queue.remove(number) for number in (first, second, second)]

    assert (oldest, waiting, moved) == ((1, "t chat: one"), [(2, "t chat: two")], None)
    assert answers == [False, True, False]
    assert await queue.remove(first)


async def test_a_message_is_either_sent_or_removed() -> None:
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
