"""Races: up to eight real commands at once on one thread, some killed at random instants; then the check.

python -m tests.crash.races --trials N [--seed N]     print what was run, killed, refused, and every promise broken

Effects are lines that commands append; who may have done what is read from the journal and the decisions.
"""

import argparse
import json
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.forked_commands import Ended, Running, load, start
from tests.fakes.openai_server import separate_server

__all__ = ["NEVER_SAID", "THREAD", "Race", "Tally", "main", "race", "served"]

THREAD = "race"
_CALLS = ("c1", "c2", "c3")
_ROUNDS = 3
_LAST_RUNS = 10
_KILLED = 0.3
"""Share of the commands that are killed."""
_HELD = re.compile(r"is open in another process \(pid (\d+)\)")
NEVER_SAID = ("Traceback", "locked", "unexpected", "malformed")
_CODES = {"run": {0, 1, 3, 4, 7}, "recover": {0, 1, 2}, "approvals": {0, 1, 2}}
_RUNS = (
    ("--approve", "all", "--recover", "retry-safe"),
    ("--approve", "all"),
    ("--approve", "all", "--recover", "cancel"),
    (),
)
_LOOKS = (
    ("inspect", THREAD, "--json"),
    ("calls", THREAD, "--json"),
    ("threads", "list", "--json"),
    ("approvals", "list", "--json"),
)


@dataclass
class Tally:
    """What came of the races."""

    ended: Counter[str] = field(default_factory=Counter)
    """Per command and exit code."""
    violations: list[str] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Commands that were told who holds the thread."""
        return self.ended["run 7"]

    @property
    def killed(self) -> int:
        """Commands that were killed."""
        return sum(count for name, count in self.ended.items() if name.endswith("-9"))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A strict model in a process of its own: two commands, one more, then it is done; yields its base URL."""
    commands = {call: {"command": f"echo {call} >> effects; sleep 0.05"} for call in _CALLS}
    first = [["c1", "bash", commands["c1"]], ["c2", "bash", commands["c2"]]]
    replies = [{"calls": first}, {"calls": [["c3", "bash", commands["c3"]]]}, "done"]
    with separate_server(folder / "script.json", replies, "--strict") as address:
        yield address


def race(seed: int, folder: Path, base_url: str, tally: Tally) -> None:
    """One thread from its first message to its rest, fought over; what is broken goes into the tally."""
    Race(random.Random(seed), folder, base_url).into(tally, seed)


class Race:
    """One thread, fought over."""

    def __init__(self, chance: random.Random, folder: Path, base_url: str) -> None:
        self.chance = chance
        self._folder = folder
        self.environment = {
            "GRAPH_AGENT_HOME": str(folder / "home"),
            "GRAPH_AGENT_BASE_URL": base_url,
            "GRAPH_AGENT_MODEL": "fake",
            "OPENAI_API_KEY": "sk-test",
        }
        self._started: list[Running] = []
        self.holders: set[int] = set()
        """Processes that may hold the thread besides those started here."""
        self.ended: list[Ended] = []
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True)

    def into(self, tally: Tally, seed: int) -> None:
        """Run it and add to the tally what came of it."""
        self.run()
        for one in self.ended:
            tally.ended[f"{one.arguments[0]} {one.code}"] += 1
        tally.violations += [f"seed {seed}: {broken}" for broken in self.broken()]

    def run(self) -> None:
        """From the first message to the rest."""
        count = self.chance.randint(2, 8)
        self.together([("run", f"go {number}", "--thread", THREAD) for number in range(count)])
        for _ in range(_ROUNDS):
            self.together([self._command() for _ in range(self.chance.randint(2, 8))])
        self.bring_to_rest()

    def bring_to_rest(self) -> None:
        """Run undisturbed until nothing is left to do."""
        for _ in range(_LAST_RUNS):
            last = self.start(("run", "--resume", THREAD, "--approve", "all", "--recover", "cancel")).wait()
            self.ended.append(last)
            if last.code == 0:
                return

    def broken(self) -> Iterator[str]:
        """Every promise that was broken, in words."""
        if self.ended[-1].code != 0:
            yield f"the thread never came to rest: {self.ended[-1]}"
        for one in self.ended:
            yield from self._misbehaved(one)
        yield from self._ran_too_often()
        yield from self._answered_twice()

    def _command(self) -> tuple[str, ...]:
        chance, call = self.chance, self.chance.choice(_CALLS)
        answer = ("approvals", chance.choice(("approve", "reject")), f"{THREAD}:{call}", "--json")
        recover = ("recover", THREAD, "--all", chance.choice(("retry", "done", "cancel")), "--json")
        resume = ("run", "--resume", THREAD, *chance.choice(_RUNS))
        return chance.choice((resume, resume, resume, answer, answer, recover, chance.choice(_LOOKS)))

    def together(self, commands: list[tuple[str, ...]]) -> None:
        """Start them at the same instant, kill some, wait for all."""
        running = [self.start(command) for command in commands]
        doomed = sorted((self.chance.uniform(0, 0.7), one) for one in running if self.chance.random() < _KILLED)
        began = time.monotonic()
        for at, one in doomed:
            time.sleep(max(0.0, began + at - time.monotonic()))
            one.kill()
        self.ended += [one.wait() for one in running]

    def start(self, arguments: tuple[str, ...]) -> Running:
        """Start one."""
        streams = self._folder / f"streams-{len(self._started)}"
        self._started.append(start(arguments, self.workspace, self.environment, streams))
        return self._started[-1]

    def _misbehaved(self, one: Ended) -> Iterator[str]:
        words = one.stdout + one.stderr
        if one.code != -9 and one.code not in _CODES.get(one.arguments[0], {0, 2}):
            yield f"{one.arguments} ended with {one.code}: {words}"
        if any(word in words for word in NEVER_SAID):
            yield f"{one.arguments} says what nobody should read: {words}"
        if one.code == 7 and not self._is_named(one):
            yield f"{one.arguments} does not say who holds the thread: {words}"

    def _is_named(self, one: Ended) -> bool:
        found = _HELD.search(one.stderr)
        return found is not None and int(found[1]) in {*self.holders, *(other.pid for other in self._started)} - {
            one.pid
        }

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """What the database says."""
        with closing(sqlite3.connect(self._folder / "home" / "data" / "graph-agent.db")) as connection, connection:
            rows = connection.execute(sql).fetchall()
        connection.close()
        return rows

    def _ran_too_often(self) -> Iterator[str]:
        effects = self.workspace / "effects"
        runs = Counter(effects.read_text().split() if effects.exists() else [])
        retried = Counter(call for (call,) in self.rows("SELECT call_id FROM decisions WHERE kind = 'retry'"))
        begun = Counter(call for (call,) in self.rows("SELECT call_id FROM journal WHERE status <> 'not_started'"))
        let = {call for (call,) in self.rows("SELECT call_id FROM decisions WHERE kind = 'approve'")}
        for call, count in runs.items():
            is_let = call in let
            if count > begun[call] or count > 1 + retried[call] or not is_let:
                yield f"{call} ran {count}x; begun {begun[call]}x, retried {retried[call]}x, approved: {is_let}"

    def _answered_twice(self) -> Iterator[str]:
        """Of the answers to one question exactly the one that stands was accepted, and the others name it."""
        standing = {
            (call, question): (kind, by)
            for call, question, kind, by in self.rows("SELECT call_id, question, kind, by FROM decisions")
        }
        for one in self.ended:
            if one.arguments[0] != "approvals" or one.arguments[1] == "list" or not one.stdout.startswith("{"):
                continue
            given = json.loads(one.stdout)
            stands = standing.get((given["call_id"], "approval"))
            if stands != (given["kind"], given["by"]) or given["accepted"] != given["by"].endswith(f" {one.pid}"):
                yield f"{one.arguments} was told {given}, and {stands} stands"


def main(arguments: list[str]) -> int:
    """The command line; exit 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="repeat the races")
    options = parser.parse_args(arguments)
    load()
    tally, root = Tally(), Path(tempfile.mkdtemp(prefix="races-"))
    with served(root) as base_url:
        for number in range(options.trials):
            race(options.seed + number, root / f"race-{number}", base_url, tally)
    report = [f"{count:6d}  {name}" for name, count in sorted(tally.ended.items())]
    report += [f"seed: {options.seed}", f"killed: {tally.killed}", f"held: {tally.held}", *tally.violations]
    sys.stdout.write("\n".join([*report, f"violations: {len(tally.violations)}\n"]))
    if not tally.violations:
        shutil.rmtree(root)
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
