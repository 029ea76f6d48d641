from pathlib import Path

import pytest

from graph_agent.app.instructions import read_context_file, system_prompt


def test_all_that_differs_between_threads_comes_last_so_that_a_prefix_cache_keeps_the_rest() -> None:
    here = system_prompt(Path("/srv/one"), "2026-11-28").splitlines()
    there = system_prompt(Path("/srv/two"), "2027-01-01").splitlines()

    assert [number - len(here) for number, line in enumerate(here) if line != there[number]] == [-3, -1]


def test_the_place_and_the_day_are_told() -> None:
    told = system_prompt(Path("/srv/one"), "2026-11-28").splitlines()

    assert (told[-3], told[-1]) == ("Workspace: /srv/one", "Date: 2026-11-28")


def test_what_is_remembered_stands_between_what_never_changes_and_what_always_does() -> None:
    plain = system_prompt(Path("/srv/one"), "2026-11-28")
    with_memory = system_prompt(Path("/srv/one"), "2026-11-28", "- likes tabs")

    stable, where = plain.rsplit("\n\n", 1)
    words = "What the user, and earlier conversations, want you to know:\n\n- likes tabs"
    assert with_memory == f"{stable}\n\n{words}\n\n{where}"


def test_a_long_context_file_is_told_by_its_beginning_and_end(tmp_path: Path) -> None:
    path = tmp_path / "CONTEXT.md"
    path.write_text("a" * 10_000 + "b" * 10_000)

    told = read_context_file(path)

    notice = f"\n[… 4000 characters of {path} are left out here …]\n"
    assert told == "a" * 8_000 + notice + "b" * 8_000


def test_no_context_file_or_an_unreadable_one_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (read_context_file(tmp_path / "none"), caplog.text) == ("", "")
    assert read_context_file(tmp_path) == ""
    assert "cannot be read" in caplog.text
