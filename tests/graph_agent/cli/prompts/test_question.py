import asyncio
from pathlib import Path

from tests.graph_agent.cli.prompts.scene import ALL_KEYS, KEYS, LONG, A, B, Scene


async def test_what_was_typed_before_the_keys_are_offered_does_not_count(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, A).asked("y")

    assert (shown[0].startswith("Approval: bash"), shown[-2:]) == (True, ["<dropped>", KEYS])


async def test_a_page_with_more_must_be_opened_before_it_can_be_approved(tmp_path: Path) -> None:
    scene = Scene(tmp_path, LONG)

    shown = await scene.asked("y", "m", "y")

    first_refusal = shown.index("Part of it is not shown yet; open it first with m.")
    assert ("  │ line 499" in shown[:first_refusal], "  │ line 499" in shown) == (False, True)
    assert KEYS.replace("> ", " [m]ore > ") in shown
    assert scene.session.log == [("decide", "call-a", "approve", "")]


async def test_a_page_with_more_can_be_refused_unopened(tmp_path: Path) -> None:
    scene = Scene(tmp_path, LONG)

    await scene.asked("n")

    assert scene.session.log == [("decide", "call-a", "reject", "")]


async def test_a_question_answered_before_it_is_its_turn_is_not_asked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)
    scene.elsewhere.write_text('{"call-b": "approve"}')

    shown = await scene.asked("y")

    assert (shown.count(ALL_KEYS), shown[-1]) == (1, "bash: answered by cli pid 99: yes")


async def test_a_question_answered_while_it_is_asked_disappears(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, scene.elsewhere.write_text, '{"call-a": "reject"}')

    shown = await scene.asked()

    assert (shown[-1], scene.session.log) == ("bash: answered by cli pid 99: no", [])


async def test_the_answer_that_was_first_is_told_when_ours_came_too_late(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    refused = scene.session.decide

    async def too_late(*args: object, **named: object) -> object:
        scene.elsewhere.write_text('{"call-a": "reject"}')
        return await refused(*args, **named)  # type: ignore[arg-type]  # handed on as it came

    scene.session.decide = too_late  # type: ignore[method-assign, assignment]  # others answer in this very moment

    assert (await scene.asked("y"))[-1] == "bash: answered by cli pid 99: no"


async def test_a_typo_is_asked_again_and_answers_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)

    shown = await scene.asked("", "yy", "always yes", "approve", "n")

    assert shown.count("Please answer with one of: y, a, e, n, r, s") == 4
    assert scene.session.log == [("decide", "call-a", "reject", "")]
