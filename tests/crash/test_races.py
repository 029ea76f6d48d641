"""Many real processes at once: on one thread, and on one database; `make sweep` has the long form."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.chat_races import race_chat
from tests.crash.forked_commands import load, start
from tests.crash.races import NEVER_SAID, Tally, race, served

_QUICK_SEEDS = (3, 9, 4, 8, 1, 2, 5, 6)
"""Raced one after the other until some command was killed and some was refused: on a quick or busy machine all of a
race may be over before its kills."""
_AT_ONCE = 8


@pytest.fixture
def base_url(tmp_path: Path) -> Iterator[str]:
    load()
    with served(tmp_path) as address:
        yield address


@pytest.mark.timeout(120)
def test_processes_that_fight_over_a_thread_and_are_killed_run_nothing_twice(tmp_path: Path, base_url: str) -> None:
    tally = Tally()

    for seed in _QUICK_SEEDS:
        race(seed, tmp_path / f"race-{seed}", base_url, tally)
        if min(tally.held, tally.killed) > 0:
            break

    assert tally.violations == []
    assert min(tally.held, tally.killed) > 0


@pytest.mark.timeout(120)
def test_a_chat_hears_what_others_answer_refuses_seven_who_want_its_thread_and_leaves_it_whole_when_killed(
    tmp_path: Path, base_url: str
) -> None:
    tally = Tally()

    race_chat(1, tmp_path / "race", base_url, tally)

    assert tally.violations == []
    assert (tally.ended["chat -9"], tally.held > 0) == (1, True)


@pytest.mark.timeout(120)
def test_eight_threads_begun_at_once_on_a_database_that_is_not_there_yet_all_come_to_rest(
    tmp_path: Path, base_url: str
) -> None:
    environment = {
        "GRAPH_AGENT_HOME": str(tmp_path / "home"),
        "GRAPH_AGENT_BASE_URL": base_url,
        "GRAPH_AGENT_MODEL": "fake",
        "OPENAI_API_KEY": "sk-test",
    }
    (tmp_path / "workspace").mkdir()
    names = [f"t{number}" for number in range(_AT_ONCE)]

    running = [
        start(
            ("run", "go", "--thread", name, "--mode", "bypassPermissions"),
            tmp_path / "workspace",
            environment,
            tmp_path / name,
        )
        for name in names
    ]
    ended = [one.wait() for one in running]
    listed = start(("threads", "list", "--json"), tmp_path, environment, tmp_path / "list").wait()

    assert [(one.code, one.stdout) for one in ended] == [(0, "done\n")] * _AT_ONCE
    assert [one.stderr for one in ended if any(word in one.stderr for word in NEVER_SAID)] == []
    assert {
        thread["thread_id"]: thread["status"] for thread in json.loads(listed.stdout)["threads"]
    } == dict.fromkeys(names, "idle")
    assert sorted((tmp_path / "workspace" / "effects").read_text().split()) == sorted(["c1", "c2", "c3"] * _AT_ONCE)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_sixty_threads_fought_over_keep_every_promise(tmp_path: Path, base_url: str) -> None:
    seed, tally = random.randrange(2**32), Tally()

    for number in range(60):
        race(seed + number, tmp_path / f"race-{number}", base_url, tally)

    assert tally.violations == []
    assert tally.held > 20


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_twenty_chats_fought_over_keep_every_promise(tmp_path: Path, base_url: str) -> None:
    seed, tally = random.randrange(2**32), Tally()

    for number in range(20):
        race_chat(seed + number, tmp_path / f"race-{number}", base_url, tally)

    assert tally.violations == []
    assert tally.ended["chat -9"] == 20
