from pathlib import Path
from types import ModuleType

import pytest

from tools.plugins import source_from_setting, source_from_text, sources_from_entry_points


@pytest.mark.parametrize(
    ("line", "given"), [("pathlib:Path", Path), (" pathlib:Path.home ", Path.home), ("pathlib", ModuleType)]
)
def test_a_line_gives_what_it_names(line: str, given: object) -> None:
    source = source_from_setting(line)

    found = source.give()

    assert source.place == f"tools = {line!r}"
    assert found == given or type(found) is given


def test_a_text_runs_as_it_was_read_and_knows_where_it_stands(tmp_path: Path) -> None:
    place = tmp_path / "mine.py"
    place.write_text("raise SystemError")

    module = source_from_text(str(place), "here = __file__\n").give()

    assert isinstance(module, ModuleType)
    assert module.here == str(place)


def test_installed_packages_are_found_by_their_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "shouting-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[graph_agent.tools]\nshout = shouting.tools:make\n")
    monkeypatch.syspath_prepend(tmp_path)

    places = [source.place for source in sources_from_entry_points()]

    assert places == ["entry point shout of shouting 2.0"]
