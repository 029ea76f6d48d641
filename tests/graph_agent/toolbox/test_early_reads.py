import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from graph_agent.ports import Delta, Scope
from graph_agent.toolbox.early_reads import EarlyReadToolbox
from tests.fakes.toolbox_world import World, call_of

Call = tuple[str, dict[str, Any]]
READ: Call = ("read_file", {"file_path": "a.txt"})
WRITE: Call = ("write_file", {"file_path": "a.txt", "content": "new"})


class Reply:
    """A reply that streams in over a workspace with one file."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        self.world = World(folder, early=True, **rules)
        self.file = self.world.workspace / "a.txt"
        self.file.write_text("early\n", encoding="utf-8")
        assert isinstance(self.world.box, EarlyReadToolbox)
        self.box: EarlyReadToolbox = self.world.box
        self.box.begin(Scope("t1", "default"))

    async def stream(self, *calls: Call) -> None:
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
        """Whether running the call returns the content from the time when the reply streamed in."""
        output = (await self.world.go_through(READ[0], **READ[1]))[1].output
        assert ("early" in output) != ("late" in output)
        return "early" in output

    async def stored_state(self) -> str | None:
        """The version of the file that the thread is known to have read."""
        return await self.world.around.file_states.get("t1", str(self.file.resolve()))


async def test_a_read_is_made_while_its_reply_streams_in_and_used_once(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.stream(READ)
    reply.box.finish([READ])

    state_before = await reply.stored_state()
    assert [await reply.is_read_early(), await reply.is_read_early()] == [True, False]
    assert (state_before, await reply.stored_state() is None) == (None, False)


@pytest.mark.parametrize("is_same", [False, True])
async def test_an_early_read_is_not_used_if_the_model_has_the_same_content_already(
    tmp_path: Path, is_same: bool
) -> None:
    reply = Reply(tmp_path)
    digest = hashlib.sha256(b"early\n").hexdigest() if is_same else "another's"
    plan = await reply.world.plan(READ[0], **READ[1])
    shown = {"path": str(reply.file.resolve()), "sha256": digest, "offset": 1, "limit": 2000, "until": 1}
    await reply.stream(READ)

    outcome = await reply.box.run(call_of(plan.tool_name, plan.arguments), Scope("t1", "default", shown=(shown,)))

    assert ("early" in outcome.output) != is_same


@pytest.mark.parametrize(
    "finished", [[], [("read_file", {"file_path": "b.txt"})], [("ls", {"path": "a.txt"})], "retry"]
)
async def test_a_read_that_the_finished_reply_does_not_contain_leaves_no_trace(
    tmp_path: Path, finished: list[Call] | str
) -> None:
    reply = Reply(tmp_path)
    await reply.stream(READ)
    if isinstance(finished, str):
        reply.box.add_delta(Delta("retry", "again"))
    reply.box.finish([READ] if isinstance(finished, str) else finished)

    assert (await reply.stored_state(), await reply.is_read_early()) == (None, False)


@pytest.mark.parametrize(("first", "is_early"), [(WRITE, False), (("ls", {"path": "."}), True)])
async def test_a_read_waits_for_a_write_before_it_but_not_for_other_reads(
    tmp_path: Path, first: Call, is_early: bool
) -> None:
    reply = Reply(tmp_path)
    await reply.stream(first, READ)
    reply.box.finish([first, READ])

    assert (reply.file.read_text(), await reply.is_read_early()) == ("late\n", is_early)


@pytest.mark.parametrize(
    ("path", "rules"),
    [
        ("a.txt", {"ask": ["read_file"]}),
        ("a.txt", {"deny": ["read_file(a.txt)"]}),
        ("{tmp_path}/out.txt", {}),
    ],
)
async def test_nothing_that_a_rule_asks_about_or_denies_or_outside_the_workspace_is_read_early(
    tmp_path: Path, path: str, rules: dict[str, list[str]]
) -> None:
    (tmp_path / "out.txt").write_text("x", encoding="utf-8")
    reply = Reply(tmp_path, **rules)
    await reply.stream(("read_file", {"file_path": path.format(tmp_path=tmp_path)}))

    assert [read.task.result() for read in reply.box._reads.values()] == [None]


async def test_a_result_is_not_used_in_another_thread_or_folder(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.stream(READ)
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
    await reply.stream(search)
    reply.box.finish([search])

    _, outcome = await reply.world.go_through("grep", pattern="early")

    assert ("a.txt" in outcome.output, reply.world.progress) == (True, [])


async def test_a_call_that_was_read_early_is_prepared_once_for_its_reply_and_mode(tmp_path: Path) -> None:
    reply = Reply(tmp_path)
    await reply.stream(READ)
    [read] = reply.box._reads.values()
    found = read.task.result()
    assert found is not None

    other_mode = await reply.box.prepare(*READ, Scope("t1", "plan"))
    first, second = [await reply.box.prepare(*READ, Scope("t1", "default")) for _ in range(2)]

    assert (first is found.plan, second is found.plan, second == first) == (True, False, True)
    assert (other_mode is found.plan, other_mode == first) == (False, True)
