from pathlib import Path

import pytest

from graph_agent.app.toolset import Roots, requested_roots, roots_of
from graph_agent.config.settings import Settings
from graph_agent.errors import UsageError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    for name in ("home/data", "work/inner", "lib", "other"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path.resolve()


def _settings(place: Path, *add_dirs: Path) -> Settings:
    return Settings(database=place / "home" / "data" / "graph-agent.db", add_dirs=add_dirs)


def test_the_folders_of_settings_and_thread_come_together_once_and_what_is_gone_is_named(place: Path) -> None:
    (place / "link").symlink_to("lib")
    stored = (str(place / "lib"), str(place / "gone"), str(place / "link"), str(place / "work" / "inner"))

    found = roots_of(place / "work", stored, _settings(place, place / "other"))

    assert found == Roots((place / "other", place / "lib"), (str(place / "gone"),))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/", "is the whole disk"),
        ("root", "is the whole disk"),
        ("home", "belongs to the agent itself"),
        ("home/data", "belongs to the agent itself"),
        ("none", "is not a folder"),
        ("file", "is not a folder"),
    ],
)
def test_no_folder_is_added_that_is_none_or_would_give_everything_away(place: Path, name: str, why: str) -> None:
    (place / "root").symlink_to("/")
    (place / "file").touch()

    with pytest.raises(UsageError, match=why):
        requested_roots((str(place / name),), _settings(place))


def test_a_link_is_added_as_the_folder_it_leads_to(place: Path) -> None:
    (place / "link").symlink_to("lib")

    assert requested_roots((str(place / "link"),), _settings(place)) == (str(place / "lib"),)
