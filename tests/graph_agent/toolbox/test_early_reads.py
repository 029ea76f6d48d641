import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

from graph_agent.ports import Delta, Scope
from graph_agent.toolbox.early_reads import EarlyReadToolbox
from tests.fakes.toolbox_world import World, call_of

Call = tuple[str, dict[str, Any]]
READ: Call = ("read_file", {"file_path": "a.txt"})
WRITE: Call = ("write_file", {"file_path": "a.txt", "content": "new"})


class Reply:
    """A reply that streams in over a workspace with one file."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.world = World(folder, early=True, **rules)
        self.file = self.world.workspace / "a.txt"
        self.file.write_text("early\n", encoding="utf-8")
        assert isinstance(self.world.box, EarlyReadToolbox)
        self.box: EarlyReadToolbox = self.world.box
        self.box.begin(Scope("t1", "default"))

    async def arrives(self, *calls: Call) -> None:
        """The calls stream in, each in two pieces; then the file changes."""
        for place, (name, arguments) in enumerate(calls):
            text = json.dumps(arguments)
            self.box.add_delta(Delta("tool_call", text[:5], place, name))
            self.box.add_delta(Delta("tool_call", text[5:], place, name))
        await asyncio.gather(
            *(task for task in asyncio.all_tasks() if task is not asyncio.current_task()), return_exceptions=True
        )
        self.file.write_text("late\n", encoding="utf-8")

    async def is_read_early(self) -> bool:
        """Whether the run of the call gives what stood in the file while the reply streamed in."""
        output = (await self.world.go_through(READ[0], **READ[1]))[1].output
        assert ("early" in output) != ("late" in output)
        return "early" in output

    async def noted(self) -> str | None:
        """What the thread is known to have read."""
        return await self.world.around.file_states.get("t1", str(self.file.resolve()))


async def test_a_read_of_the_finished_reply_has_been_made_while_it_arrived_and_is_used_once(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(READ)
    reply.box.finish([READ])

    noted_before = await reply.noted()
    assert [await reply.is_read_early(), await reply.is_read_early()] == [True, False]
    assert (noted_before, await reply.noted() is None) == (None, False)


async def test_a_read_ahead_counts_unless_the_model_has_the_very_same_before_it(tmp_path: Path) -> None:
    is_early = []
    for digest in ("another's", hashlib.sha256(b"early\n").hexdigest()):
        reply = Reply(tmp_path / digest)
        plan = await reply.world.plan(READ[0], **READ[1])
        shown = {"path": str(reply.file.resolve()), "sha256": digest, "offset": 1, "limit": 2000}
        await reply.arrives(READ)
        call = call_of(plan.tool_name, plan.arguments)
        outcome = await reply.box.run(call, Scope("t1", "default", shown=(shown,)))
        is_early.append("early" in outcome.output)

    assert is_early == [True, False]


async def test_a_read_that_the_finished_reply_does_not_hold_leaves_no_trace(tmp_path: Path) -> None:
    replies: list[list[Call]] = [[], [("read_file", {"file_path": "b.txt"})], [("ls", {"path": "a.txt"})]]
    for number, calls in enumerate(replies):
        reply = Reply(tmp_path / str(number))
        await reply.arrives(READ)
        reply.box.finish(calls)

        assert (await reply.noted(), await reply.is_read_early()) == (None, False)


async def test_a_read_behind_a_write_waits_for_it(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(WRITE, READ)
    reply.box.finish([WRITE, READ])

    assert (reply.file.read_text(), await reply.is_read_early()) == ("late\n", False)


async def test_reads_in_a_row_are_all_made_early(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(("ls", {"path": "."}), READ)
    reply.box.finish([("ls", {"path": "."}), READ])

    assert await reply.is_read_early()


async def test_what_a_rule_asks_about_or_denies_is_not_read_early(tmp_path: Path) -> None:
    for name, rules in {"one": {"ask": ["read_file"]}, "two": {"deny": ["read_file(a.txt)"]}}.items():
        reply = Reply(tmp_path / name, **rules)
        await reply.arrives(READ)

        assert [early.task.result() for early in reply.box._reads.values()] == [None]


async def test_nothing_outside_of_the_workspace_is_read_early(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    (tmp_path / "out.txt").write_text("x", encoding="utf-8")
    await reply.arrives(("read_file", {"file_path": str(tmp_path / "out.txt")}))

    assert [early.task.result() for early in reply.box._reads.values()] == [None]


async def test_a_reply_that_begins_anew_forgets_what_it_read(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(READ)
    reply.box.add_delta(Delta("retry", "again"))
    reply.box.finish([READ])

    assert not await reply.is_read_early()


async def test_what_was_read_in_another_thread_or_folder_is_not_taken(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(READ)
    reply.box.finish([READ])
    (reply.world.workspace / "sub").mkdir()

    plan = await reply.world.plan(READ[0], **READ[1])
    call = call_of(plan.tool_name, plan.arguments)
    elsewhere = [Scope("t2", "default"), Scope("t1", "default", str(reply.world.workspace / "sub"))]
    outputs = [(await reply.box.run(call, scope)).output for scope in elsewhere]

    assert ["early" in output for output in outputs] == [False, False]


async def test_progress_of_an_early_read_is_not_reported(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    search: Call = ("grep", {"pattern": "early"})
    await reply.arrives(search)
    reply.box.finish([search])

    _, outcome = await reply.world.go_through("grep", pattern="early")

    assert ("a.txt" in outcome.output, reply.world.progress) == (True, [])


async def test_a_call_that_is_read_ahead_is_judged_once_and_only_for_the_reply_it_stands_in(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.arrives(READ)
    [early] = reply.box._reads.values()
    found = early.task.result()
    assert found is not None

    other_mode = await reply.box.prepare(*READ, Scope("t1", "plan"))
    first, second = [await reply.box.prepare(*READ, Scope("t1", "default")) for _ in range(2)]

    assert (first is found.plan, second is found.plan, second == first) == (True, False, True)
    assert (other_mode is found.plan, other_mode == first) == (False, True)
