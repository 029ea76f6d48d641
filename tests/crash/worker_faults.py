"""Faults of workers on several hosts and of their PostgreSQL server, and how soon others take the work over.

python -m tests.crash.worker_faults --each N [--kind KIND]... [--seed N] [--plain]

prints for each kind a row with what happened, and every promise that was broken. With --plain the tasks are run by
plain LangGraph (`plain_workers`).
"""

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from graph_agent.errors import AgentError
from tests.crash.hosts import Host, hosts, hosts_missing
from tests.crash.plain_workers import PlainTrial
from tests.crash.races import NEVER_SAID
from tests.crash.worker_trial import ENDED, REPLIES, Trial
from tests.fakes.forked_command import ForkedProcess, Start, start
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.postgres_server import PostgresServer, find_programs, running_server
from tests.isolation import clean_environment
from tests.scenarios.command import NO_SANDBOX, Command

__all__ = ["HOST_FAULTS", "KINDS", "Faults", "clocks_missing", "main", "play_faults", "report"]

HOST_FAULTS = ("host gone", "pause", "cut")
"""After these another host has to wait for the lease."""
SERVER_FAULTS = ("server killed", "server killed in a commit", "server restarted", "no connections")
KINDS = ("kill", *HOST_FAULTS, "short pause", *SERVER_FAULTS)
_LONG = (12.5, 14.5)
"""Seconds: longer than a lease."""
_GRACE_S = 150.0
"""Within which something happens, once the last fault has passed: a task ends, or the person is asked."""
_CLOCK_LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
_IN_COMMIT = "SELECT 1 FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'"


def clocks_missing() -> str:
    """Why no worker can get a clock of its own; empty if it can."""
    return "" if Path(_CLOCK_LIBRARY).exists() else "faketime is not installed"


@dataclass
class Fault:
    """A fault, and the threads that its worker held."""

    kind: str
    at: float
    held: dict[str, str] = field(default_factory=dict)
    """Thread to token; those that nobody has taken over yet."""
    taken: list[float] = field(default_factory=list)
    """Seconds until another process had the thread, or a person was asked about it."""


@dataclass
class _Worker:
    host: Host | None
    environment: Mapping[str, str]
    preloaded: tuple[tuple[str, str], ...]
    program: ForkedProcess | None = None


class Faults:
    """The faults of one trial."""

    def __init__(
        self,
        trial: Trial,
        server: PostgresServer,
        database: str,
        places: Sequence[Host | None],
        clocks: Sequence[int],
    ) -> None:
        self.trial = trial
        self.done: list[Fault] = []
        self.ended_alone = 0
        """Workers that ended by themselves, and were started again as a supervisor would."""
        self._server = server
        self._output = trial.command.folder / "output"
        """What the workers print."""
        self._monitor_url = server.url(database)
        self._workers = [
            self._worker(number, host, database, clocks[number % len(clocks)]) for number, host in enumerate(places)
        ]
        self._due: dict[int, tuple[float, Callable[[], None]]] = {}
        """By the worker that is out, or -1 for the server: when and how it comes back."""
        self._monitor: psycopg.Connection[tuple[object, ...]] | None = None

    def _worker(self, number: int, host: Host | None, database: str, clock: int) -> _Worker:
        url = self._server.url(database, with_password=True, address=host.address if host else "127.0.0.1")
        home = self.trial.command.folder / f"home{number}"
        home.mkdir()
        (home / "config.toml").write_text(f'{NO_SANDBOX}database = "{url}"\n')
        environment = {name: one for name, one in self.trial.command.env.items() if name != "GRAPH_AGENT_DB"}
        shifted = {"LD_PRELOAD": _CLOCK_LIBRARY, "FAKETIME": f"{clock:+d}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        preloaded = tuple(shifted.items()) if clock else ()
        return _Worker(host, {**environment, **dict(preloaded), "GRAPH_AGENT_HOME": str(home)}, preloaded)

    def run(self, planned: Sequence[str], tasks: int) -> None:
        """Inject these faults, in order, while so many tasks are open; then let all tasks end, and check them."""
        left = list(planned)
        for worker in self._workers:
            self._start(worker)
        until, reached = 0.0, tuple[int, ...]()
        try:
            while True:
                self._end_due()
                self._restart_ended()
                open_tasks = self._look()
                if left and open_tasks and self._inject(left[0]):
                    left.pop(0)
                # A machine that is busy takes long for each step, and takes it.
                now = (len(left), open_tasks, len(self.trial.asked), self.trial.allowed.total())
                if now != reached:
                    until, reached = time.monotonic() + _GRACE_S, now
                if left:
                    with suppress(AgentError):
                        for _ in range(tasks - open_tasks):
                            self.trial.add()
                elif not open_tasks and not self._due:
                    break
                if time.monotonic() > until:
                    break
                time.sleep(self.trial.chance.uniform(0.05, 0.2))
        finally:
            self._stop_all()
        self.trial.check()

    def _look(self) -> int:
        """Answer as the person does, and see who holds which thread; returns the number of open tasks."""
        asked: set[str] = set()
        with suppress(AgentError):
            asked = self.trial.answer()
        self._watch(asked)
        with suppress(AgentError):
            return sum(status not in ENDED for status, _ in self.trial.ends().values())
        return 1

    # -- faults --------------------------------------------------------------------------------------------------

    def _inject(self, kind: str) -> bool:
        if kind in SERVER_FAULTS:
            return -1 not in self._due and self._fail_server(kind)
        rows = self._leases()
        ready = [number for number in range(len(self._workers)) if number not in self._due]
        held = {number: self._held_by(self._workers[number], rows) for number in ready}
        busy = [number for number in ready if held[number]]
        # Somebody has to be left who takes over.
        if not busy or len(self._workers) - len(ready) > len(self._workers) // 2:
            return False
        number = self.trial.chance.choice(busy)
        fault = Fault(kind, time.monotonic(), held[number])
        self._fail_worker(number, kind)
        self.done.append(fault)
        return True

    def _fail_worker(self, number: int, kind: str) -> None:
        worker, now = self._workers[number], time.monotonic()
        assert worker.program is not None
        program, long = worker.program, self.trial.chance.uniform(*_LONG)
        match kind:
            case "kill":
                program.kill()
                program.wait()
                self._start(worker)
            case "host gone":
                program.kill()
                program.wait()
                self._due[number] = now + long, lambda: self._start(worker)
            case "pause" | "short pause":
                program.send_signal(signal.SIGSTOP)
                seconds = long if kind == "pause" else self.trial.chance.uniform(1, 6)
                self._due[number] = now + seconds, lambda: program.send_signal(signal.SIGCONT)
            case "cut":
                assert worker.host is not None
                worker.host.cut()
                self._due[number] = now + long, worker.host.heal
            case _:
                raise ValueError(kind)

    def _fail_server(self, kind: str) -> bool:
        chance, server = self.trial.chance, self._server
        match kind:
            case "server killed":
                server.crash()
                time.sleep(chance.uniform(0, 3))
                server.start()
            case "server killed in a commit":
                if not self._crash_in_commit():
                    return False
            case "server restarted":
                server.restart(chance.choice(("fast", "immediate")))
            case "no connections":
                taken: list[psycopg.Connection[tuple[object, ...]]] = []
                with suppress(psycopg.OperationalError):
                    while True:
                        taken.append(psycopg.connect(self._monitor_url))
                self._due[-1] = time.monotonic() + chance.uniform(2, 10), lambda: _close_all(taken)
            case _:
                raise ValueError(kind)
        self.done.append(Fault(kind, time.monotonic()))
        return True

    def _crash_in_commit(self) -> bool:
        """Kill the server while a commit is under way; until then, each is slowed down to a tenth of a second."""
        slow = ("ALTER SYSTEM SET commit_delay = 100000", "ALTER SYSTEM SET commit_siblings = 0")
        for statement in (*slow, "SELECT pg_reload_conf()"):
            self._server.execute(statement)
        until, found = time.monotonic() + 5, False
        with psycopg.connect(self._monitor_url, autocommit=True) as watching:
            while not found and time.monotonic() < until:
                found = bool(watching.execute(_IN_COMMIT).fetchall())
            if found:
                self._server.crash()
        if found:
            self._server.start()
        for statement in ("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()"):
            self._server.execute(statement)
        return found

    # -- workers ---------------------------------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> None:
        command = self.trial.command
        asked = Start(
            self.trial.arguments,
            command.workspace,
            worker.environment,
            self.trial.module,
            host=worker.host.pid if worker.host else None,
            preloaded=worker.preloaded,
        )
        with Path(os.devnull).open("rb") as nothing, self._output.open("ab") as output:
            worker.program = start(asked, [nothing.fileno(), output.fileno(), output.fileno()])

    def _end_due(self) -> None:
        for number, (at, end) in list(self._due.items()):
            if time.monotonic() >= at:
                end()
                del self._due[number]

    def _restart_ended(self) -> None:
        for number, worker in enumerate(self._workers):
            if worker.program is not None and worker.program.poll() is not None and number not in self._due:
                self.ended_alone += 1
                self._start(worker)

    def _stop_all(self) -> None:
        for _, end in self._due.values():
            end()
        self._due.clear()
        programs = [worker.program for worker in self._workers if worker.program is not None]
        for program in programs:
            program.send_signal(signal.SIGTERM)
        for program in programs:
            program.wait()
        self._close_monitor()
        output = self._output.read_text(errors="replace")
        for own in ("closed the connection unexpectedly", "unexpected postmaster exit"):  # PostgreSQL's words.
            output = output.replace(own, "")
        self.trial.violations += [f"a worker said {word!r}" for word in NEVER_SAID if word in output]

    # -- leases ----------------------------------------------------------------------------------------------------

    def _leases(self) -> list[tuple[str, str, str, int, bool]]:
        try:
            if self._monitor is None:
                self._monitor = psycopg.connect(self._monitor_url, autocommit=True)
            rows: list[tuple[str, str, str, int, bool]] = self._monitor.execute(self.trial.held.encode()).fetchall()  # type: ignore[assignment]  # as the statement says
        except psycopg.Error:
            self._close_monitor()
            return []
        return rows

    def _close_monitor(self) -> None:
        if self._monitor is not None:
            self._monitor.close()
        self._monitor = None

    def _held_by(self, worker: _Worker, rows: Sequence[tuple[str, str, str, int, bool]]) -> dict[str, str]:
        pid = worker.program.pid if worker.program else 0
        return {thread: token for thread, token, _, holder, is_held in rows if is_held and holder == pid}

    def _watch(self, asked: set[str]) -> None:
        """Note which threads of those that workers lost have another holder, or wait for the person."""
        now = time.monotonic()
        rows = {thread: (token, is_held) for thread, token, _, _, is_held in self._leases()}
        ended = {thread for thread, (_, is_held) in rows.items() if not is_held}
        for fault in self.done:
            for thread, token in list(fault.held.items()):
                current, _ = rows.get(thread, (token, True))
                if current != token or (thread in asked and thread in ended):
                    fault.taken.append(now - fault.at)
                    del fault.held[thread]


def _close_all(connections: Sequence[psycopg.Connection[tuple[object, ...]]]) -> None:
    for connection in connections:
        connection.close()


def play_faults(
    folder: Path,
    programs: Path,
    planned: Sequence[str],
    seed: int,
    *,
    workers: int,
    tasks: int,
    clocks: Sequence[int] = (0,),
    kind: type[Trial] = Trial,
) -> Faults:
    """One trial, on a server of its own; on hosts, where this machine can make them."""
    with ExitStack() as stack:
        places: list[Host | None] = [None] * workers
        if not hosts_missing():
            places = [*stack.enter_context(hosts(workers))]
        addresses = [place.address for place in places if place]
        server = stack.enter_context(running_server(programs, addresses))
        url = server.create_database()
        model = stack.enter_context(FakeOpenAI(REPLIES, strict=True, by_history=True, log=folder / "requests"))
        for place in places:
            if place is not None:
                place.within(model.listen)
        command = Command(folder, model.base_url, extra_env={"GRAPH_AGENT_DB": url})
        trial = kind(command, random.Random(seed))
        for _ in range(tasks):
            trial.add()
        faults = Faults(trial, server, str(conninfo_to_dict(url)["dbname"]), places, clocks)
        faults.run(planned, tasks)
        trial.violations += trial.wrong_requests(model)
        return faults


def report(kind: str, faults: Faults) -> str:
    """A row: kind, faults, tasks, threads held, violations, take-over p50/p95/max, workers that ended alone."""
    taken = sorted(seconds for one in faults.done for seconds in one.taken)
    held = len(taken) + sum(len(one.held) for one in faults.done)
    spread = "-"
    if len(taken) > 1:
        p95 = statistics.quantiles(taken, n=20, method="inclusive")[-1]
        spread = f"{statistics.median(taken):.1f} / {p95:.1f} / {taken[-1]:.1f}"
    trial = faults.trial
    counts = (len(faults.done), len(trial.tasks), held, len(trial.violations))
    return f"| {kind} | {' | '.join(map(str, counts))} | {spread} | {faults.ended_alone} |"


def main(arguments: list[str]) -> int:
    """The command line; exit 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=20, help="how many faults of each kind")
    parser.add_argument("--kind", action="append", choices=[*KINDS, "all at once"])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--skew", type=int, default=0, help="seconds by which the clocks of two workers are wrong")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--plain", action="store_true", help="by plain LangGraph, without graph-agent")
    options = parser.parse_args(arguments)
    broken, programs, missing = 0, find_programs(), hosts_missing()
    if programs is None:
        parser.error("no PostgreSQL server was found (apt install postgresql)")
    if options.skew and (without := clocks_missing()):
        parser.error(f"no worker can have a wrong clock: {without}")
    clocks = (0, options.skew, 0, -options.skew) if options.skew else (0,)
    for number, kind in enumerate(options.kind or KINDS):
        root = Path(tempfile.mkdtemp(prefix="faults-"))
        chance = random.Random(options.seed)
        every = [kind for kind in KINDS if not missing or kind not in HOST_FAULTS]
        planned = [chance.choice(every) if kind == "all at once" else kind for _ in range(options.each)]
        with clean_environment(root):
            found = play_faults(
                root,
                programs,
                planned,
                options.seed + number,
                workers=options.workers,
                tasks=options.tasks,
                clocks=clocks,
                kind=PlainTrial if options.plain else Trial,
            )
        broken += len(found.trial.violations)
        sys.stdout.write("\n".join([report(kind, found), *found.trial.violations[:20], str(root), ""]))
        sys.stdout.flush()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
