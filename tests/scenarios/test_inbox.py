"""Messages that wait for their turn: kept through kills, sent once, in order, before what comes later."""

import asyncio
from pathlib import Path

import pytest

from graph_agent.cli.views.time_travel import find_rewind_points
from graph_agent.errors import ModelError
from graph_agent.events import MessageAdded
from tests.fakes.openai_server import DELAY, TC, TXT, Reply
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.command import NO_SANDBOX, Command, scripted, until
from tests.scenarios.stage import THREAD, Stage

_SHARED = "```\n$ echo of my own\nof my own\n```"


def _queued(command: Command) -> int:
    [thread] = command.json("threads", "list")["threads"]
    return int(thread["queued_messages"])


def test_a_prompt_that_cannot_be_sent_yet_is_kept_and_sent_once_what_was_open_is_settled(tmp_path: Path) -> None:
    script = [TC("c1", "bash", {"command": "echo x >> log"}), TXT("ran"), TXT("and more"), TXT("and last")]
    with scripted(tmp_path, script) as command:
        first, _ = command.run_json("go", "--thread", "t1")
        second, _ = command.run_json("then this", "--resume", "t1")
        waiting = _queued(command)
        third = command("run", "finally that", "--resume", "t1", "--approve", "all")

    assert (first, second, waiting, third.returncode) == (3, 3, 1, 0)
    assert third.stdout == "ran\nand more\nand last\n"
    assert (command.said(), _queued(command)) == (["go", "then this", "finally that"], 0)


def test_what_is_typed_while_a_turn_runs_survives_a_kill_and_is_sent_next_but_for_what_was_taken_back(
    tmp_path: Path,
) -> None:
    script = [TC("c1", "bash", {"command": "touch begun; sleep 60"}), TXT("seen"), TXT("so?"), TXT("good night")]
    with scripted(tmp_path, script) as command:
        own = tmp_path / "home" / "commands" / "say.md"
        own.parent.mkdir(parents=True)
        own.write_text("Say $ARGUMENTS to me.")
        arguments = ["chat", "go", "--thread", "t1", "--mode", "bypassPermissions"]
        chat = command.chat(*arguments)
        until((command.workspace / "begun").exists)
        chat.plays("<good night", "queued: good night", "</say goodbye", "queued: /say goodbye", "<never mind")
        chat.plays("queued: never mind", "^\x1b[A", "no longer queued: never mind")
        chat.signals(9)
        chat.ends()
        waiting = _queued(command)
        command("recover", "--cancel", "c1")
        code, result = command.run_json("--resume", "t1")

    assert (waiting, code, result["answer"], _queued(command)) == (2, 0, "good night", 0)
    assert (command.said()) == (["go", "good night", "Say goodbye to me."])


def test_a_message_typed_while_a_turn_runs_is_sent_when_it_ends_with_what_was_shared_before_it(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, [TXT("a slow one", pace_s=0.5), TXT("the next one")]) as command:
        chat = command.chat("chat", "go")
        chat.shows("esc to interrupt")
        chat.plays("<!echo of my own", "after this turn: !echo", "</share", "after this turn: /share", "<more")
        chat.plays("queued: more", "the next one", "^\x04")
        code = chat.ends()

    said, more = command.said()
    assert (code, said, more) == (0, "go", f"more\n\nI ran this myself, in the workspace:\n{_SHARED}")


_BLOCKS = TC("c1", "bash", {"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replies", "killed"),
    [
        pytest.param([_BLOCKS, TXT("seen")], "while the call runs", id="stored, while a call runs"),
        pytest.param(
            [_BLOCKS, DELAY(60, TXT("late")), TXT("seen")],
            "while the model answers",
            id="in the history, being sent",
        ),
        pytest.param(
            [DELAY(60, TXT("late")), TXT("seen")], "while the model answers", id="stored, while the model answers"
        ),
    ],
)
def test_an_urgent_message_from_another_process_survives_a_kill_and_reaches_the_model_once(
    tmp_path: Path, replies: list[Reply], killed: str
) -> None:
    with scripted(tmp_path, replies, settings=NO_SANDBOX) as command:
        agent = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until((command.workspace / "begun").exists if _BLOCKS in replies else lambda: bool(command.server.bodies))
        queued = command("threads", "say", "t1", "use tabs")
        if killed == "while the model answers" and _BLOCKS in replies:
            (command.workspace / "go").touch()
            until(lambda: len(command.server.bodies) == 2)
        command.kill(agent)
        (command.workspace / "go").touch()
        if killed == "while the call runs":
            command("recover", "--done", "c1", "--result", "it was done")
        code, result = command.run_json("--resume", "t1")

    assert (queued.returncode, code, result["answer"], _queued(command)) == (0, 0, "seen", 0)
    assert command.said() == ["go", "use tabs"]


def test_an_idle_chat_sends_what_another_process_queues_and_notices_its_answer_to_a_question_left_open(
    tmp_path: Path,
) -> None:
    replies = [TXT("pong"), TC("c1", "bash", {"command": "touch x"}), TXT("made")]
    with scripted(tmp_path, replies) as command:
        chat = command.chat("chat", "ping", "--thread", "t1")
        chat.plays("pong", "mode default", "^half a")
        command("threads", "say", "t1", "make x")
        chat.plays("> make x", "? help", "^\x1b", "Left open")
        command("approvals", "approve", "c1")
        chat.plays("made")
        chat.shows("> half a")
        chat.plays("^\x15\x04")
        code = chat.ends()

    assert (code, command.said(), (command.workspace / "x").exists()) == (0, ["ping", "make x"], True)


async def test_an_urgent_message_is_in_the_next_request_of_the_turn_and_others_wait_for_its_end(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(calls(("w", "write_a")), text("one"), text("two")))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.queue("later")
        await session.queue("now", is_urgent=True)
        await session.decide(rest.questions[0].question, "approve")
        await session.proceed()
        sent = [said for kind, said in stage.model.sent() if kind == "human"]
        removed = [await session.remove_queued(number) for number, _ in await session.queued()]

    assert (sent, removed) == (["go", "now"], [True])
    assert [event.text for event in stage.events if isinstance(event, MessageAdded)] == ["now"]
    assert [point.text for point in find_rewind_points(stage.database, THREAD)] == ["now", "go"]


async def test_an_urgent_message_that_comes_too_late_for_the_turn_begins_the_next_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(text("one"), text("two"), text("three")))
    async with stage.open_session() as session:
        await session.send("go")
        await session.queue("later")
        await session.queue("now")
        assert await session.mark_queued_urgent() == 2
        await session.queue("first", is_urgent=True)
        await session.send_queued()

    assert [said for kind, said in stage.model.sent() if kind == "human"] == ["go", "later", "now", "first"]


async def test_a_life_that_ends_before_it_could_mark_a_message_as_taken_does_not_send_it_twice(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(ModelError("down"), text("hello")))
    async with stage.open_session() as session:
        await session.queue("hi")
        await session.queue("you")
        session._dependencies.inbox.take = _never  # type: ignore[method-assign]  # the life ends before this
        failed = await session.send_queued()

    async with stage.open_session() as session:
        await session.start()
        rest = await session.send_queued()
        nothing = await session.send_queued()

    assert (failed and failed.status, rest and rest.answer, nothing) == ("model_error", "hello", None)
    assert [said for kind, said in stage.model.sent() if kind == "human"] == ["hi", "you"]


async def _never(thread_id: str, message_id: int) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("messages", [0, 3])
async def test_queued_messages_make_one_turn_each_in_order(tmp_path: Path, messages: int) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(*(text(f"answer {n}") for n in range(3))))
    answers = []
    async with stage.open_session() as session:
        for number in range(messages):
            await session.queue(f"message {number}")
        while (rest := await session.send_queued()) is not None:
            answers.append(rest.answer)

    assert answers == [f"answer {number}" for number in range(messages)]


async def test_a_message_stopped_before_its_turn_began_waits_and_the_model_is_not_asked(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(text("too late")))
    async with stage.open_session() as session:
        sending = asyncio.create_task(session.send("hello"))
        await asyncio.sleep(0)
        await session.stop()

        assert ((await sending).status, [text for _, text in await session.queued()]) == ("stopped", ["hello"])
    assert stage.model.requests == []
