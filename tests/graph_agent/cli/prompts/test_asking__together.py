from pathlib import Path

from tests.fakes.scripted_session import approval, recovery
from tests.graph_agent.cli.prompts.scene import ALL_KEYS, KEYS, LONG, A, B, Scene

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

    assert "write_file is long: it is asked about by itself." in shown
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

    assert "One decision for the 2 calls shown:" in shown
    assert scene.session.log == [
        ("decide", "call-a", "approve", ""),
        ("decide", "call-1", "done", "all done"),
        ("decide", "call-2", "done", "all done"),
    ]
