import pytest

from graph_agent.errors import UsageError
from graph_agent.session.session import require_selectable_mode


@pytest.mark.parametrize(
    ("mode", "words"), [("yolo", "Unknown mode 'yolo'"), ("bypassPermissions", "chosen at the start")]
)
def test_a_mode_that_a_living_session_may_not_take_is_refused(mode: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require_selectable_mode(mode)


def test_any_other_mode_may_be_taken() -> None:
    assert require_selectable_mode("plan") == "plan"
