"""Fixtures of the use cases."""

from pathlib import Path

import pytest

from tests.fakes.scripted_model import ScriptedModel
from tests.scenarios.stage import Stage, two_turns


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with one thread of two turns, in a folder of its own."""
    path = tmp_path / "data" / "a.db"
    path.parent.mkdir(mode=0o700)
    await two_turns(Stage(path, ScriptedModel()))
    return path
