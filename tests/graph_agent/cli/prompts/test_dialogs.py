from pathlib import Path

import pytest

from tests.fakes.scripted_session import recovery
from tests.graph_agent.cli.prompts.scene import Scene


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (("r",), ("retry", "")),
        (("c",), ("cancel", "")),
        (("x", "d", " it is there "), ("done", "it is there")),
    ],
)
async def test_an_interrupted_call_is_retried_done_or_cancelled(
    tmp_path: Path, lines: tuple[str, ...], decided: tuple[str, str]
) -> None:
    scene = Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}))

    await scene.asked(*lines)

    assert scene.session.log == [("decide", "call-a", *decided)]


async def test_what_still_runs_can_be_ended_before_the_call_is_tried_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}, processes=(7, 8)))

    shown = await scene.asked("e", "r")

    assert scene.session.log == [("end", "call-a"), ("decide", "call-a", "retry", "")]
    assert "  still running: pid 7, 8; a retry waits until they have ended" in shown
    assert [line for line in shown if line.endswith("> ")] == [
        "[r]etry  [d]one  [c]ancel  [e]nd what still runs > ",
        "[r]etry  [d]one  [c]ancel > ",
    ]
