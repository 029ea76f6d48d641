from pathlib import Path

from tests.fakes.scripted_session import approval
from tests.graph_agent.cli.prompts.scene import A, B, Scene


async def test_each_question_gets_its_own_answer_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)

    await scene.asked("y", "n")

    assert scene.session.log == [("decide", "call-a", "approve", ""), ("decide", "call-b", "reject", "")]
    assert scene.answered == {"call-a", "call-b"}


async def test_several_questions_are_listed_before_the_first_is_asked(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, approval("c1", "bash", {}, summary="$ ls\x1b[2J", risk="high"), B).asked("y", "y")

    assert shown[:3] == [
        "2 questions, answered one by one or with all; nothing runs before that:",
        "  1. bash $ ls\\x1b[2J (HIGH)",
        "  2. bash (MEDIUM)",
    ]


async def test_a_single_question_needs_no_list(tmp_path: Path) -> None:
    assert (await Scene(tmp_path, A).asked("y"))[0].startswith("Approval: bash")
