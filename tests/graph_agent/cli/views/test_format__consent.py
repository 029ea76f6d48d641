import io
import sys

import pytest

from graph_agent.cli.views.format import confirm
from graph_agent.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "is_agreed"), [("y\n", True), (" YES \n", True), ("\n", False), ("n\n", False), ("yea\n", False)]
)
def test_anything_but_yes_is_no(monkeypatch: pytest.MonkeyPatch, typed: str, is_agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))

    assert confirm("Go on?", otherwise="--yes") is is_agreed


def test_nobody_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    with pytest.raises(UsageError, match="nobody answered, so nothing was changed; --yes goes on"):
        confirm("Go on?", otherwise="--yes goes on")
