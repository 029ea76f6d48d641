import asyncio
from pathlib import Path

from tests.fakes.scripted_session import approval, recovery
from tests.graph_agent.cli.prompts.scene import ALL_KEYS, KEYS, LONG, A, B, Scene


async def test_what_was_typed_before_the_keys_are_offered_does_not_count(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, A).asked("y")

    assert (shown[0].startswith("Approval: bash"), shown[-2:]) == (True, ["<dropped>", KEYS])


async def test_a_page_with_more_must_be_opened_before_it_can_be_approved(tmp_path: Path) -> None:
    scene = Scene(tmp_path, LONG)

    shown = await scene.asked("y", "m", "y")

    first_refusal = next(n for n, line in enumerate(shown) if line.startswith("You have not seen all of it yet"))
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


async def test_each_question_gets_its_own_answer_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)

    await scene.asked("y", "n")

    assert scene.session.log == [("decide", "call-a", "approve", ""), ("decide", "call-b", "reject", "")]
    assert scene.answered == {"call-a", "call-b"}


async def test_several_questions_are_listed_before_the_first_is_asked(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, approval("c1", "bash", {}, summary="$ ls\x1b[2J", risk="high"), B).asked("y", "y")

    assert shown[:3] == [
        "2 calls need your decision before any of them runs:",
        "  1. bash $ ls\\x1b[2J (HIGH)",
        "  2. bash (MEDIUM)",
    ]


async def test_a_single_question_needs_no_list(tmp_path: Path) -> None:
    assert (await Scene(tmp_path, A).asked("y"))[0].startswith("Approval: bash")


_HIGH = approval("call-c", "bash", {"command": "rm -rf d"}, risk="high")
_LAST_PAGE = "Approval: bash  HIGH risk  call-c"


async def test_one_answer_for_all_comes_after_each_was_shown_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, _HIGH)

    shown = await scene.asked("all", "y")

    asked = shown.index("One answer for the 3 calls shown, 1 of them HIGH risk:")
    titles = [line for line in shown[:asked] if line.startswith("Approval")]
    assert [title.rpartition("  ")[2] for title in titles] == ["call-a", "call-b", "call-c"]
    assert shown[asked + 1 :] == ["<dropped>", "[y]es to all  [n]o to all  [b]ack > "]
    assert scene.session.log == [("decide", call, "approve", "") for call in ("call-a", "call-b", "call-c")]
    assert scene.answered == {"call-a", "call-b", "call-c"}


async def test_a_bare_all_answers_nothing_and_back_asks_one_by_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)

    await scene.asked("all", "", "all", "b", "n", "y")

    assert scene.session.log == [("decide", "call-a", "reject", ""), ("decide", "call-b", "approve", "")]


async def test_all_may_be_refused_from_the_second_question_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, _HIGH)

    await scene.asked("y", "all", "n")

    kinds = [entry[2] for entry in scene.session.log]
    assert kinds == ["approve", "reject", "reject"]


async def test_the_last_question_offers_no_all(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, A, B).asked("y", "y")

    assert [line for line in shown if line.endswith("> ")] == [ALL_KEYS, KEYS]


async def test_a_call_too_long_to_be_seen_at_once_is_asked_about_by_itself(tmp_path: Path) -> None:
    long = approval("call-d", "write_file", LONG.call["arguments"])
    scene = Scene(tmp_path, A, B, long)

    shown = await scene.asked("all", "y", "n")

    assert "write_file is long: you are asked about it separately." in shown
    kinds = [(entry[1], entry[2]) for entry in scene.session.log]
    assert kinds == [("call-a", "approve"), ("call-b", "approve"), ("call-d", "reject")]


async def test_what_was_answered_elsewhere_is_left_out_of_the_one_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, _HIGH)
    scene.elsewhere.write_text('{"call-b": "reject"}')

    shown = await scene.asked("all", "y")

    assert "One answer for the 2 calls shown, 1 of them HIGH risk:" in shown
    assert [entry[1] for entry in scene.session.log] == ["call-a", "call-c"]
    assert scene.answered == {"call-a", "call-b", "call-c"}


async def test_interrupted_calls_are_decided_together_and_approvals_stay_apart(tmp_path: Path) -> None:
    broken = [recovery(f"call-{n}", "bash", {"command": f"make {n}"}) for n in (1, 2)]
    scene = Scene(tmp_path, A, *broken)

    shown = await scene.asked("y", "all", "d", "all done")

    assert "One answer for the 2 calls shown:" in shown
    assert scene.session.log == [
        ("decide", "call-a", "approve", ""),
        ("decide", "call-1", "done", "all done"),
        ("decide", "call-2", "done", "all done"),
    ]
