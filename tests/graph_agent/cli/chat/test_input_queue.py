import asyncio
from pathlib import Path

import pytest

from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.events import EventBus
from tests.fakes.scripted_session import ScriptedSession, Turn, rest


class Scene:
    """What waits beside a scripted session, and what was said of it."""

    def __init__(self, workspace: Path) -> None:
        self.said: list[str] = []
        self.remembered: list[str] = []
        self.session = ScriptedSession(EventBus(), workspace, [Turn(rest())] * 3)
        self.meanwhile = InputQueue(self.said.append, self.remembered.append)

    async def enter(self, *lines: str) -> None:
        for line in lines:
            await self.meanwhile.enter(self.session, line)

    async def back(self) -> str | None:
        return await self.meanwhile.take_back(self.session)

    async def due(self, *, in_order: bool = True) -> str | None:
        return await self.meanwhile.due_command(self.session, in_order=in_order)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    commands = tmp_path / "home" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("Read $1 and say what is wrong.")
    (commands / "empty.md").write_text("")
    return Scene(tmp_path)


async def test_what_waits_is_taken_back_from_its_end_as_it_was_typed(scene: Scene) -> None:
    await scene.enter("one", "/mode plan", "/review a.py", "!ls")
    waiting = list(scene.remembered)

    back = [await scene.back() for _ in range(5)]

    assert back == ["!ls", "/review a.py", "/mode plan", "one", None]
    assert await scene.session.queued() == []
    assert (waiting, scene.remembered) == ([], back[:4])
    assert scene.said[:2] == ["queued: one  (Up to edit)", "after this turn: /mode plan"]


async def test_a_command_of_the_users_own_waits_in_the_inbox_as_the_message_it_is(scene: Scene) -> None:
    await scene.enter("/review a.py", "@notes.md what is this?")

    assert [text for _, text in await scene.session.queued()] == [
        "Read a.py and say what is wrong.",
        "@notes.md what is this?",
    ]


async def test_what_a_hook_kept_back_is_not_taken_back_in_the_place_of_what_came_next(scene: Scene) -> None:
    await scene.enter("/review a.py")
    [(number, _)] = await scene.session.queued()
    await scene.session.remove_queued(number)

    await scene.enter("hello")

    assert ([number], [await scene.back() for _ in range(2)]) == ([1], ["hello", None])


async def test_a_command_that_stands_for_nothing_is_told_at_once(scene: Scene) -> None:
    await scene.enter("/empty")

    assert (scene.said, await scene.back()) == (["/empty expands to an empty message. Nothing was sent."], None)


async def test_a_command_comes_after_the_messages_typed_before_it(scene: Scene) -> None:
    await scene.enter("one", "/mode plan", "two")

    before = await scene.due()
    await scene.session.send_queued()
    after = [await scene.due(), await scene.due()]

    assert (before, after) == (None, ["/mode plan", None])
    assert scene.remembered == ["one", "/mode plan"]


async def test_after_a_failure_a_command_need_not_wait_for_messages(scene: Scene) -> None:
    await scene.enter("one", "/model two")

    assert (await scene.due(in_order=False), await scene.back()) == ("/model two", "one")


async def test_what_an_earlier_life_queued_is_taken_back_last(scene: Scene) -> None:
    await scene.session.queue("long ago")
    await scene.enter("now")

    assert [await scene.back() for _ in range(3)] == ["now", "long ago", None]


class Opening(ScriptedSession):
    """A thread that is held, and whose session is being opened."""

    was_kept = False

    def skip_early_request(self) -> None:
        self._note("skip early request")


async def test_what_is_entered_while_the_chat_loads_is_stored_in_order_once_the_thread_is_held(
    scene: Scene,
) -> None:
    queue, opening = scene.meanwhile, Opening(EventBus(), scene.session.workspace)
    queue.enter_early("one")
    queue.enter_early("/mode plan")
    before = (
        queue.describe_early(),
        await queue.take_back_early(),
        queue.unsent(),
        queue.kept_in(has_failed=False),
    )

    queue.enter_early("two")
    queue.begin_storing(opening)
    queue.enter_early("/status")
    queue.enter_early("three")
    await queue.wait_until_stored(asyncio.get_running_loop().create_future())
    stored = (queue.describe_early(), queue.kept_in(has_failed=False), queue.kept_in(has_failed=True))
    back = await queue.take_back_early()
    await queue.store_early(scene.session)

    assert before == (["typed: one", "/mode plan"], "/mode plan", ["one"], "")
    assert stored == (["queued: one", "queued: two", "/status", "queued: three"], "thread-1", "")
    assert (back, queue.unsent(), queue.has_lines) == ("three", ["one", "two"], True)
    assert opening.log == [
        ("queue", "one"),
        ("queue", "two"),
        ("skip early request",),
        ("queue", "three"),
        ("take back", "three"),
    ]
    assert (await queue.take_back_early(), scene.said, scene.remembered) == (None, [], [])


async def test_what_was_typed_behind_a_command_that_leaves_the_thread_is_taken_along_and_nothing_else(
    scene: Scene,
) -> None:
    await scene.enter("stays", "/clear", "comes", "!ls", "along")

    await scene.due(in_order=False)
    await scene.meanwhile.follow(scene.session, "new")
    await scene.due(in_order=False)
    await scene.due(in_order=False)
    await scene.meanwhile.follow(scene.session, "newer")

    assert [entry for entry in scene.session.log if entry[0] == "hand over"] == [
        ("hand over", "comes", "new"),
        ("hand over", "along", "new"),
    ]
