from pathlib import Path

from graph_agent.app.instructions import instructions_for


def test_all_that_differs_between_threads_comes_last_so_that_a_prefix_cache_keeps_the_rest() -> None:
    here = instructions_for(Path("/srv/one"), "2026-11-28").splitlines()
    there = instructions_for(Path("/srv/two"), "2027-01-01").splitlines()

    assert [number - len(here) for number, line in enumerate(here) if line != there[number]] == [-3, -1]


def test_the_place_and_the_day_are_told() -> None:
    told = instructions_for(Path("/srv/one"), "2026-11-28").splitlines()

    assert (told[-3], told[-1]) == ("Workspace: /srv/one", "Date: 2026-11-28")
