"""Tasks and workers as a person meets them: nothing is lost, run twice or left waiting, whatever dies."""

import asyncio
import hashlib
import os
import signal
import socket
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph_agent.config.paths import database_path
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage.sqlite.thread_lock import write_lease
from graph_agent.worker.runner import Worker, WorkerOptions
from graph_agent.worker.tasks import cancel_task
from tests.fakes.openai_server import DELAY, ERR, TC, TXT
from tests.fakes.postgres_server import PostgresServer
from tests.scenarios.command import NO_SANDBOX, Command, Scripted, scripted, until


def _add(command: Command, *arguments: str) -> dict[str, Any]:
    task: dict[str, Any] = command.json("tasks", "add", *arguments)
    return task


def _statuses(command: Command) -> dict[str, str]:
    return {task["prompt"]: task["status"] for task in command.json("tasks", "list")["tasks"]}


def _work(command: Command, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = command("worker", "--once", *arguments)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_a_worker_runs_what_is_queued_and_the_task_and_its_thread_show_the_end(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("one is done"), TXT("two is done")]) as command:
        first = _add(command, "do one")
        _add(command, "do two")
        before = _statuses(command)
        done = _work(command)
        shown = command("tasks", "show", first["task_id"][-8:-4]).stdout

        assert before == {"do one": "queued", "do two": "queued"}
        assert (done.returncode, _statuses(command)) == (0, {"do one": "done", "do two": "done"})
        assert f"threads show {first['thread_id']}" in shown
        assert "one is done" in command("threads", "show", first["thread_id"]).stdout
        assert [body["messages"][-1]["content"] for body in command.server.bodies] == ["do one", "do two"]


def test_a_task_waits_for_a_worker_on_the_host_that_has_its_workspace(
    postgres: PostgresServer, postgres_template: str, tmp_path: Path
) -> None:
    url = postgres.create_database(postgres_template)
    with scripted(tmp_path, [TXT("done")]) as command:
        command.extra_env = {"GRAPH_AGENT_DB": url}
        task = _add(command, "go")
        here = f'"host": "{task["host"]}"'
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "UPDATE graph_agent.tasks SET options = replace(options, %s, %s)", (here, here[:-1] + '2"')
            )
        _work(command)
        waiting, shown = _statuses(command), command("tasks", "show", task["task_id"]).stdout
        _work(command, "--host-label", f"{task['host']}2")

        assert (task["host"], waiting) == (socket.gethostname(), {"go": "queued"})
        assert f"waits for a worker on {task['host']}2" in " ".join(shown.split())
        assert _statuses(command) == {"go": "done"}


def test_a_question_waits_in_the_inbox_while_other_tasks_run_and_the_answer_continues_the_task(
    tmp_path: Path,
) -> None:
    script = [TC("c1", "bash", {"command": "touch asked"}), TXT("no question"), TXT("touched")]
    with scripted(tmp_path, script) as command:
        _add(command, "asks")
        _add(command, "does not")
        _work(command)
        waiting, file = _statuses(command), (command.workspace / "asked").exists()
        once_more = _work(command).stdout
        command("approvals", "approve", "c1")
        _work(command)

        assert (waiting, file) == ({"asks": "waiting", "does not": "done"}, False)
        assert "started in thread" not in once_more
        assert (_statuses(command)["asks"], (command.workspace / "asked").exists()) == ("done", True)


@pytest.mark.parametrize("at_a_time", ["1", "2"])
def test_tasks_run_side_by_side_up_to_the_number_of_jobs(tmp_path: Path, at_a_time: str) -> None:
    with scripted(tmp_path, [DELAY(1.5, TXT("slow"))] * 2) as command:
        for number in range(2):
            _add(command, f"task {number}")
        _work(command, "-j", at_a_time)
        times = [request.at for request in command.server.requests]

        assert set(_statuses(command).values()) == {"done"}
        assert (max(times) - min(times) < 1.5) == (at_a_time == "2")


def test_a_killed_worker_leaves_its_task_to_the_next_one_which_asks_before_it_repeats_anything(
    tmp_path: Path,
) -> None:
    script = [TC("c1", "bash", {"command": "echo once >> log; sleep 60"}), TXT("told")]
    with scripted(tmp_path, script, settings=NO_SANDBOX) as command:
        task = _add(command, "go", "--mode", "bypassPermissions")
        worker = command.start("worker")
        until((command.workspace / "log").exists)
        running = _statuses(command)["go"]
        command.kill(worker)
        interrupted = _statuses(command)["go"]
        _work(command)
        still = _statuses(command)["go"]
        command("recover", task["thread_id"], "--cancel", "c1")
        _work(command)

        assert (running, interrupted, still) == ("running", "interrupted", "interrupted")
        assert _statuses(command)["go"] == "done"
        assert (command.workspace / "log").read_text() == "once\n"


def test_a_task_whose_worker_died_after_the_turn_is_done_without_another_request(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("answered")]) as command:
        task = _add(command, "go")
        command("run", "--resume", task["thread_id"])  # As a worker that died before it noted the end.
        _work(command)

        assert (_statuses(command)["go"], len(command.server.bodies)) == ("done", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_worker_lets_a_turn_end_but_begins_no_other_task(tmp_path: Path, number: signal.Signals) -> None:
    with scripted(tmp_path, [DELAY(1.0, TXT("finished")), TXT("later")]) as command:
        _add(command, "first")
        _add(command, "second")
        worker = command.start("worker")
        until(lambda: bool(command.server.requests))
        worker.send_signal(number)
        code = worker.wait(timeout=20)

        assert (code, _statuses(command)) == (128 + number, {"first": "done", "second": "queued"})


def test_a_turn_that_outlasts_the_grace_period_is_interrupted_and_continued_by_the_next_worker(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("never")), TXT("again")]) as command:
        _add(command, "go")
        worker = command.start("worker", "--grace", "0.2s")
        until(lambda: bool(command.server.requests))
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=20)
        paused = _statuses(command)["go"]
        _work(command)

        assert (paused, _statuses(command)["go"]) == ("paused", "done")


def test_a_worker_whose_tables_were_migrated_meanwhile_lets_its_turn_end_and_leaves_the_rest(
    postgres: PostgresServer, postgres_template: str, tmp_path: Path
) -> None:
    url = postgres.create_database(postgres_template)
    script = [DELAY(1, TC("c1", "bash", {"command": "touch x"})), DELAY(1, TXT("done")), TXT("later")]
    with scripted(tmp_path, script, settings=NO_SANDBOX) as command:
        command.extra_env = {"GRAPH_AGENT_DB": url}
        _add(command, "first", "--mode", "bypassPermissions")
        _add(command, "second")
        worker = command.start("worker")
        until(lambda: len(command.server.requests) == 2)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE graph_agent.schema_version SET version = version + 1")
            code = worker.wait(timeout=40)
            connection.execute("UPDATE graph_agent.schema_version SET version = version - 1")
        after = _statuses(command)
        _work(command)

        assert (code, after) == (1, {"first": "done", "second": "queued"})
        assert _statuses(command) == {"first": "done", "second": "done"}


def test_a_worker_continues_a_task_whose_lease_it_could_not_end_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(tmp_path, [TXT("after all")]) as command:
        task = _add(command, "go")
        database = database_path(command.env)
        with closing(sqlite3.connect(database)) as connection, connection:
            write_lease(connection, task["thread_id"], "lost", "2026-11-30T12:00:00Z")
        for name, value in command.env.items():
            monkeypatch.setenv(name, value)
        asyncio.run(Worker(database, WorkerOptions(until_idle=True), lambda _: None).run())

        assert _statuses(command) == {"go": "done"}


def test_a_failed_task_is_retried_in_its_thread_and_a_cancelled_one_runs_only_then(tmp_path: Path) -> None:
    with scripted(tmp_path, [ERR(400, "no such model"), TXT("now"), TXT("after all")]) as command:
        failing, cancelled = _add(command, "fails"), _add(command, "cancelled")
        command("tasks", "cancel", cancelled["task_id"])
        _work(command)
        first = _statuses(command)
        error = command.json("tasks", "show", failing["task_id"])["error"]
        threads = {thread["thread_id"] for thread in command.json("threads", "list")["threads"]}
        for task in (failing, cancelled):
            assert command("tasks", "retry", task["task_id"]).returncode == 0
        _work(command)

        assert first == {"fails": "failed", "cancelled": "cancelled"}
        assert "no such model" in error
        assert threads == {failing["thread_id"]}
        assert _statuses(command) == {"fails": "done", "cancelled": "done"}
        assert [message["content"] for message in _user_messages(command)] == ["fails", "fails", "cancelled"]


def _user_messages(command: Scripted) -> list[dict[str, Any]]:
    return [message for body in command.server.bodies for message in body["messages"] if message["role"] == "user"]


def test_a_retried_task_whose_thread_has_a_question_waits_for_its_answer(tmp_path: Path) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "touch asked"}), TXT("touched")]) as command:
        task = _add(command, "asks")
        _work(command)
        command("tasks", "cancel", task["task_id"])
        command("tasks", "retry", task["task_id"])
        retried, shown = _statuses(command), command("tasks", "show", task["task_id"]).stdout
        command("approvals", "approve", "c1")
        answered = _statuses(command)
        _work(command)

        assert (retried, "Answer it: " in shown, answered) == ({"asks": "waiting"}, True, {"asks": "queued"})
        assert _statuses(command) == {"asks": "done"}


def test_cancelling_a_running_task_stops_its_turn(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("never"))]) as command:
        task = _add(command, "go")
        worker = command.start("worker")
        until(lambda: bool(command.server.requests))
        command("tasks", "cancel", task["task_id"])
        until(lambda: command.json("threads", "list")["threads"][0]["status"] != "running")
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=20)

        assert _statuses(command) == {"go": "cancelled"}


def test_a_worker_survives_a_turn_that_ends_while_it_is_being_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, said = Session.stop, list[str]()

    async def stop_late(session: Session) -> TurnResult:
        await asyncio.sleep(1)
        return await stop(session)

    async def work(command: Scripted, task: dict[str, Any]) -> None:
        working = asyncio.create_task(Worker(database, WorkerOptions(until_idle=True), said.append).run())
        await asyncio.to_thread(until, lambda: bool(command.server.requests))
        await cancel_task(database, task["task_id"])
        await working

    monkeypatch.setattr(Session, "stop", stop_late)
    with scripted(tmp_path, [DELAY(0.8, TXT("done"))]) as command:
        task = _add(command, "go")
        database = database_path(command.env)
        for name, value in command.env.items():
            monkeypatch.setenv(name, value)
        asyncio.run(work(command, task))

        assert _statuses(command) == {"go": "cancelled"}
    assert "another worker continues it" in said[-1]


def test_a_task_waits_for_its_time_and_a_repeated_one_is_queued_again_as_it_starts(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("ok")]) as command:
        _add(command, "later", "--at", "2h")
        _add(command, "daily", "--every", "1d")
        _work(command)
        found = sorted((task["prompt"], task["status"]) for task in command.json("tasks", "list")["tasks"])
        repeated = [task for task in command.json("tasks", "list")["tasks"] if task["prompt"] == "daily"]

        assert found == [("daily", "done"), ("daily", "scheduled"), ("later", "scheduled")]
        assert len({task["thread_id"] for task in repeated}) == 2


def test_two_workers_share_the_tasks_and_none_runs_twice(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(0.2, TXT("ok"))] * 6) as command:
        for number in range(6):
            _add(command, f"task {number}")
        workers = [command.start("worker", "-j", "2", "--once") for _ in range(2)]
        for worker in workers:
            worker.wait(timeout=60)

        asked = [message["content"] for message in _user_messages(command)]
        assert sorted(asked) == [f"task {number}" for number in range(6)]
        assert set(_statuses(command).values()) == {"done"}


def test_a_worktree_of_its_own_keeps_the_changes_of_a_task_apart(tmp_path: Path) -> None:
    script = [TC("c1", "write_file", {"path": "new.txt", "content": "mine\n"}), TXT("written")]
    with scripted(tmp_path, script) as command:
        _git(command, "init", "-q")
        _git(command, "commit", "-q", "--allow-empty", "-m", "start")
        task = _add(command, "add a file", "--worktree", "--mode", "acceptEdits")
        _work(command)
        [tree] = command.json("worktrees", "list")["worktrees"]
        path = Path(tree["path"])
        refused = command("worktrees", "remove", tree["branch"])
        _git(command, "add", ".", cwd=path)
        _git(command, "commit", "-q", "-m", "new", cwd=path)
        removed = command("worktrees", "remove", tree["branch"])

        assert _statuses(command)["add a file"] == "done"
        assert (tree["branch"], tree["changed_files"]) == (task["branch"], 1)
        assert not (command.workspace / "new.txt").exists()
        assert (refused.returncode, "not committed" in refused.stderr, removed.returncode) == (2, True, 0)
        assert (path.exists(), "is kept" in removed.stdout) == (False, True)


def _git(command: Command, *arguments: str, cwd: Path | None = None) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *names, *arguments], cwd=cwd or command.workspace, check=True, capture_output=True)


def _repository(command: Command) -> Path:
    """A repository with two commits on its default branch, the first with a tag."""
    there = command.folder / "shop"
    there.mkdir()
    _git(command, "init", "-q", cwd=there)
    for text in ("old\n", "new\n"):
        (there / "a.txt").write_text(text)
        _git(command, "add", ".", cwd=there)
        _git(command, "commit", "-q", "-m", text, cwd=there)
        if text == "old\n":
            _git(command, "tag", "v1", cwd=there)
    return there


def test_a_task_for_a_repository_works_in_a_worktree_of_the_revision_on_a_branch_of_its_own(
    tmp_path: Path,
) -> None:
    with scripted(
        tmp_path, [TC("c1", "write_file", {"path": "b.txt", "content": "b\n"}), *[TXT("ok")] * 3]
    ) as command:
        there = _repository(command)
        tag = subprocess.run(["git", "rev-parse", "v1"], cwd=there, check=True, capture_output=True, text=True)
        commit = tag.stdout.strip()
        tasks = [
            _add(command, f"task {number}", "--repo", str(there), "--mode", "acceptEdits", *revision)
            for number, revision in enumerate([(), ("--revision", "v1"), ("--revision", commit[:10])])
        ]
        said = _work(command).stdout
        threads = {one["thread_id"]: Path(one["workspace"]) for one in command.json("threads", "list")["threads"]}
        places = [threads[task["thread_id"]] for task in tasks]
        branches = [(place / ".git").exists() and _branch(place) for place in places]

        assert set(_statuses(command).values()) == {"done"}
        assert [(place / "a.txt").read_text() for place in places] == ["new\n", "old\n", "old\n"]
        assert branches == [task["branch"] for task in tasks]
        assert all(f"branch {branch}" in said for branch in branches)
        assert ((places[0] / "b.txt").read_text(), (there / "b.txt").exists()) == ("b\n", False)


def _branch(place: Path) -> str:
    found = subprocess.run(
        ["git", "branch", "--show-current"], cwd=place, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


@pytest.mark.parametrize(
    ("address", "revision", "said"),
    [("shop", "v9", "has no branch, tag or commit 'v9'"), ("nowhere", "", "nowhere cannot be fetched")],
)
def test_a_task_for_a_repository_that_cannot_be_checked_out_fails_and_says_why(
    tmp_path: Path, address: str, revision: str, said: str
) -> None:
    with scripted(tmp_path, []) as command:
        _repository(command)
        task = _add(
            command, "go", "--repo", str(tmp_path / address), *(("--revision", revision) if revision else ())
        )
        _work(command)
        shown = command.json("tasks", "show", task["task_id"])

        assert (shown["status"], said in shown["error"]) == ("failed", True), shown["error"]


@pytest.mark.parametrize("is_parent", [True, False])
def test_a_checkout_that_cannot_be_written_fails_its_task_and_the_worker_runs_the_next(
    tmp_path: Path, *, is_parent: bool
) -> None:
    with scripted(tmp_path, [TXT("ok")]) as command:
        there = _repository(command)
        task = _add(command, "of a repository", "--repo", str(there))
        _add(command, "next")
        folder = command.folder / "home" / "data" / "repositories"
        if not is_parent:
            folder.mkdir()
            folder /= hashlib.sha256(str(there).encode()).hexdigest()[:16]
        folder.touch()
        _work(command)
        shown = command.json("tasks", "show", task["task_id"])

        assert _statuses(command) == {"of a repository": "failed", "next": "done"}
        assert "The worktree of the task cannot be made" in shown["error"]
        assert str(folder) in shown["error"]


_SLOW_ONCE = """
echo begin >> "$1/log"; echo $$ > "$1/pid"
if mkdir "$1/once" 2> /dev/null; then while [ ! -e "$1/go" ]; do sleep 0.05; done; fi
cat; echo end >> "$1/log"
"""


@pytest.mark.parametrize("is_git_killed", [True, False])
def test_a_checkout_in_which_the_worker_is_killed_is_repeated_once_git_has_ended(
    tmp_path: Path, *, is_git_killed: bool
) -> None:
    with scripted(tmp_path, [TXT("ok")]) as command:
        home = tmp_path / "user"
        home.mkdir()
        (home / "slow").write_text(_SLOW_ONCE)
        (home / ".gitconfig").write_text(f'[filter "slow"]\n\tsmudge = sh {home}/slow {home}\n')
        command.extra_env = {"HOME": str(home)}
        there = _repository(command)
        (there / ".gitattributes").write_text("a.txt filter=slow\n")
        _git(command, "add", ".gitattributes", cwd=there)
        _git(command, "commit", "-q", "-m", "filter", cwd=there)
        task = _add(command, "go", "--repo", str(there))
        worker = command.start("worker", "--once")
        until(lambda: (home / "pid").exists() and (home / "once").exists() and (home / "pid").read_text() != "")
        worker.send_signal(signal.SIGSTOP)
        if is_git_killed:
            os.killpg(os.getpgid(int((home / "pid").read_text())), signal.SIGKILL)
        command.kill(worker)
        second = command.start("worker", "--once")
        until(lambda: second.pid in [one["pid"] for one in command.json("top", "--once")["workers"]])
        time.sleep(0.5)  # Until it waits for what is left of git.
        (home / "go").touch()
        second.wait(timeout=60)
        place = Path(command.json("threads", "list")["threads"][0]["workspace"])

        assert _statuses(command) == {"go": "done"}, command.json("tasks", "show", task["task_id"])
        assert (_branch(place), (place / "a.txt").read_text()) == (task["branch"], "new\n")
        assert (home / "log").read_text().split() == ["begin", *([] if is_git_killed else ["end"]), "begin", "end"]
        assert [one.name for one in sorted(place.parent.iterdir()) if one.is_dir()] == [place.name, "repository"]


def test_run_submits_a_task_and_works_in_a_worktree(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("submitted"), TXT("here"), TC("c1", "bash", {"command": "touch x"})]) as command:
        _git(command, "init", "-q")
        _git(command, "commit", "-q", "--allow-empty", "-m", "start")
        submitted = command("run", "later", "--submit")
        _work(command)
        ran = command("run", "now", "--worktree")
        asked = command("run", "asks", "--worktree")
        threads = {thread["title"]: thread["workspace"] for thread in command.json("threads", "list")["threads"]}
        removed = {title: command("worktrees", "remove", threads[title]) for title in ("now", "asks")}
        command("approvals", "approve", "c1")
        once_approved = command("worktrees", "remove", threads["asks"])

        assert asked.returncode == 3
        assert {title: one.returncode for title, one in removed.items()} == {"now": 0, "asks": 2}
        assert "and is waiting. Finish it" in removed["asks"].stderr
        assert "its answered call waits for the next run" in " ".join(once_approved.stderr.split())
        assert Path(threads["asks"]).is_dir()
        assert (submitted.returncode, "Queued task" in submitted.stdout) == (0, True)
        assert "No worker is running" in submitted.stdout
        assert (ran.stdout, threads["later"]) == ("here\n", str(command.workspace))
        assert Path(threads["now"]).parent.name == f"{command.workspace.name}-worktrees"


def test_top_shows_workers_tasks_and_questions(tmp_path: Path) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "touch asked"})]) as command:
        _add(command, "asks")
        worker = command.start("worker", "-j", "2")
        until(lambda: _statuses(command)["asks"] == "waiting")
        shown, values = command("top", "--once").stdout, command.json("top", "--once")
        in_pipe = command("top").stdout
        worker.kill()
        with suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=10)
        after = command.json("top", "--once")

        assert shown.startswith("1 worker, 0 tasks running, 1 question open\n")
        assert in_pipe.partition("\n")[0] == shown.partition("\n")[0]
        assert [(one["pid"], one["slots"]) for one in values["workers"]] == [(worker.pid, 2)]
        assert (after["workers"], [task["status"] for task in after["tasks"]]) == ([], ["waiting"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "  "), "The prompt of the task is empty"),
        (("add", "x", "--at", "soon"), "is not a time"),
        (("add", "x", "--at", ""), "is not a time"),
        (("add", "x", "--at", "999999w"), "further away than the year 9999"),
        (("add", "x", "--at", "9999-12-31T23:59:59-12:00"), "is not a time"),
        (("add", "x", "--every", "5s"), "is not between 1m and 520w"),
        (("add", "x", "--every", "521w"), "is not between 1m and 520w"),
        (("add", "x", "--every", ""), "is not a duration"),
        (("add", "x", "--mode", "fast"), "mode"),
        (("add", "x", "--workspace", "/nowhere"), "is not a folder"),
        (("add", "x", "--worktree"), "needs a git repository"),
        (("add", "x", "--agent", "nobody"), "There is no agent"),
        (("add", "x", "--repo", "https://me:hidden@host/x"), "holds a user name, a password"),
        (("add", "x", "--repo", "ext::sh -c true"), "must be an address such as"),
        (("add", "x", "--repo", "shop"), "must be an address such as"),
        (("add", "x", "--repo", "--upload-pack=x:y"), "must be an address such as"),
        (("add", "x", "--repo", "/tmp/r\udcff"), r"contains '\udcff'"),
        (("add", "x", "--repo", "/tmp/r\n"), r"contains '\n'"),
        (("add", "x", "--revision", "v1"), "--revision needs --repo"),
        (("add", "x", "--repo", "https://host/x", "--worktree"), "Leave out --workspace and --worktree"),
        (("show", "12345678"), "No task matches"),
        (("cancel", "12345678"), "No task matches"),
        (("retry", "12345678"), "No task matches"),
    ],
)
def test_what_cannot_be_queued_or_found_is_a_usage_error(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    command = Command(tmp_path, "http://127.0.0.1:9/v1")

    done = command("tasks", *arguments)

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert ("hidden" in done.stderr, _statuses(command)) == (False, {})
