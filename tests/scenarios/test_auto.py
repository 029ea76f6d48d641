"""Mode auto on the real graph: a stored verdict lets a call run, and whatever is unclear asks."""

from pathlib import Path

from graph_agent.app.reader import read_database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import Stage

_YES = text('{"allow": true, "reason": "it was asked for"}')
_NO = text('{"allow": false, "reason": "it reaches further"}')


async def test_a_yes_lets_the_call_run_and_stands_in_its_record_with_what_it_used(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("w", "write_a")), _YES, text("done"))
    stage = Stage(tmp_path / "a.db", model, has_auto_mode=True)

    async with stage.life(mode="auto") as session:
        rest = await session.send("write a")

    with read_database(stage.database) as reader:
        [call] = [view.record for view in reader.calls()]
    assert (rest.status, rest.answer, rest.usage["requests"]) == ("done", "done", 3)
    assert (call["status"], call["decision"], call["rule"]) == ("success", "allow", "auto")
    assert (call["verdict"]["allow"], call["verdict"]["usage"]["total_tokens"]) == (True, 15)


async def test_a_no_asks_with_the_judges_reason_and_is_remembered_in_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("w", "write_a")), _NO, calls(("v", "write_a")))
    stage = Stage(tmp_path / "a.db", model, has_auto_mode=True)

    async with stage.life(mode="auto") as session:
        rest = await session.send("write a")
        [asked] = rest.questions
        await session.decide(asked.question, "approve")
        again = await session.proceed()

    assert (rest.status, "it reaches further" in asked.call["reason"]) == ("awaiting_approval", True)
    assert (again.status, len(model.requests)) == ("awaiting_approval", 3)


async def test_without_a_model_that_can_judge_every_call_asks(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("w", "write_a")))
    stage = Stage(tmp_path / "a.db", model)

    async with stage.life(mode="auto") as session:
        rest = await session.send("write a")

    assert (rest.status, len(model.requests), stage.toolbox.ran) == ("awaiting_approval", 1, [])
