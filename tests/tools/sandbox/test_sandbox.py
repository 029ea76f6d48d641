"""What a sandbox allows and prevents, tried by real commands in real sandboxes."""

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.project import repository_above
from tests.fakes.sandboxed_process import OTHER_USER, sandboxed_process
from tests.fakes.sandboxes import sandbox
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import until
from tools.base import ToolResult
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules, SandboxUnavailable
from tools.shell_ops.bash import BashTool


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


async def _run(around: ToolEnvironment, command: str, **context: Any) -> ToolResult:
    return await BashTool().execute(command=command, timeout=20, context=around.context(**context))


async def _in(kind: str, around: ToolEnvironment, command: str, **rules: Any) -> str:
    result = await _run(around, command, sandbox=sandbox(kind, around.workspace, **rules))
    return result.output


async def test_files_are_written_in_the_writable_folders_and_nowhere_else(
    kind: str, around: ToolEnvironment, tmp_path: Path
) -> None:
    home, workspace, cache = Path.home(), around.workspace, tmp_path / "cache"
    cache.mkdir()
    (home / "mine").write_text("mine")
    (workspace / "link").symlink_to(home / "mine")
    command = (
        "echo in > in; mkdir sub && echo in > sub/in && mv sub/in in2 && rm in; cat ~/mine; "
        f"for place in ~/mine ~/new /etc/new /new ../new link {cache}/new; do echo x > $place; done; "
        "ln ~/mine hard && echo x > hard; echo x > /proc/self/root/$HOME/mine"
    )

    output = await _in(kind, around, command, writable=(cache,))

    outside = (home / "new", Path("/etc/new"), Path("/new"), tmp_path / "new")
    assert (output.startswith("mine"), (home / "mine").read_text()) == (True, "mine")
    assert [path for path in outside if path.exists()] == []
    assert {path.name for path in workspace.iterdir()} - {"hard"} == {"in2", "sub", "link"}
    assert (cache / "new").read_text() == "x\n"


async def test_keys_cannot_be_read_and_other_files_can_in_a_home_of_thousands_of_files(
    kind: str, around: ToolEnvironment
) -> None:
    home = Path.home()
    for number in range(3_000):
        (home / f"{number:0>60}").touch()
    (home / ".ssh").mkdir()
    for name, text in ((".ssh/id", "secret"), (".netrc", "secret"), (".gitconfig", "name = Me")):
        (home / name).write_text(text)
    command = f"cat ~/.ssh/id ~/.netrc; cat ~/.gitconfig ~/{2_999:0>60} && echo read"

    output = await _in(kind, around, command, hidden=(home / ".ssh", home / ".netrc"))

    assert ("secret" in output, "name = Me" in output, "read" in output) == (False, True, True)


_CONNECT = """
import socket
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(5)
            s.connect(("127.0.0.1", PORT))
            s.send(b"hello")
        print("sent")
    except OSError as error:
        print("refused")
"""


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_nothing_is_sent_unless_the_network_is_opened(kind: str, around: ToolEnvironment, port: int) -> None:
    (around.workspace / "connect.py").write_text(_CONNECT.replace("PORT", str(port)))
    command = f"python3 connect.py | sort | uniq -c; getent hosts example.com; echo x > /dev/tcp/127.0.0.1/{port}"

    closed = await _in(kind, around, command)
    network = sandbox(kind, around.workspace, network=True)
    opened = await _run(around, "python3 connect.py", sandbox=network, call_id="c2")

    # A datagram to a network of its own reaches nobody, and says nothing of it.
    assert ("refused" in closed, "  example.com" in closed, "/dev/tcp" in closed) == (True, False, True)
    assert "sent" not in closed or kind == "bubblewrap"
    assert opened.output == "sent\nsent\n[exit code 0]"


async def test_local_sockets_and_devices_still_work(kind: str, around: ToolEnvironment) -> None:
    script = "import socket; socket.socketpair(); print('well')"

    output = await _in(kind, around, f'python3 -c "{script}"; echo x > /dev/null && head -c 3 /dev/zero | wc -c')

    assert output.startswith("well\n3\n")


async def test_no_privilege_can_be_gained_and_no_namespace_created(kind: str, around: ToolEnvironment) -> None:
    command = (
        "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; mount -t tmpfs x /mnt; mknod b b 8 0; "
        "for flag in -U -n -m -p; do unshare $flag -f true && echo made; done"
    )

    output = await _in(kind, around, command)

    assert ("NoNewPrivs:\t1" in output, "made" in output) == (True, False)
    assert "CapEff:\t0000000000000000" in output
    assert ((around.workspace / "b").exists(), os.path.ismount("/mnt")) == (False, False)


async def test_no_process_outside_can_be_signalled(kind: str, around: ToolEnvironment) -> None:
    outsider = await asyncio.create_subprocess_exec("sleep", "30")

    output = await _in(kind, around, f"kill -9 {outsider.pid} || echo refused")

    alive = outsider.returncode is None
    outsider.kill()
    await outsider.wait()
    assert (alive, "refused" in output) == (True, True)


async def test_temporary_files_belong_to_the_thread_alone(kind: str, around: ToolEnvironment) -> None:
    thread = f"t-{kind}-{os.getpid()}"

    await _run(around, "echo kept > $TMPDIR/note", sandbox=sandbox(kind, around.workspace), thread_id=thread)
    again = await _run(around, "cat $TMPDIR/note", sandbox=sandbox(kind, around.workspace), thread_id=thread)
    other = await _run(around, "cat $TMPDIR/note", sandbox=sandbox(kind, around.workspace), thread_id=f"{thread}2")

    assert (again.output, other.error is None) == ("kept\n[exit code 0]", False)
    assert not (Path(tempfile.gettempdir()) / "note").exists()


async def test_shared_temporary_files_and_sockets_are_hidden(around: ToolEnvironment) -> None:
    with tempfile.NamedTemporaryFile() as file:
        output = await _in("bubblewrap", around, f"ls {file.name}; ls /run | wc -l")

    assert ("No such file" in output, "\n0\n" in output) == (True, True)


@pytest.mark.parametrize(
    "name",
    [
        ".bashrc", ".windsurf/rules", ".vscode/tasks.json", ".mcp.json", ".envrc", ".env",
        ".graph-agent/config.toml", ".git/hooks/pre-commit",
    ],
)  # fmt: skip
async def test_a_protected_name_cannot_be_created_and_no_trace_is_left(name: str, around: ToolEnvironment) -> None:
    command = f"mkdir -p $(dirname {name}); rm -rf {name}; echo x > {name} && echo planted; echo y > other"

    output = await _in("bubblewrap", around, command)

    restored = f"restored protected names: {around.workspace}/{Path(name).parts[0]}]"
    assert "planted" not in output or restored in output
    assert [path.name for path in around.workspace.iterdir()] == ["other"]


@pytest.mark.parametrize("name", [".vscode/tasks.json", ".mcp.json", ".env", "deep/er/.env", "certs/server.key"])
async def test_an_existing_protected_file_cannot_be_changed(name: str, around: ToolEnvironment) -> None:
    path = around.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    command = f"echo x > {name}; rm -f {name}; mv {name} away; echo y > new && mv new {name}; cat {name}"

    output = await _in("bubblewrap", around, command)

    assert (path.read_text(), "mine" in output) == ("mine", True)


async def test_a_link_under_a_protected_name_is_restored(around: ToolEnvironment) -> None:
    (around.workspace / "settings").mkdir()
    (around.workspace / "settings" / "a").write_text("mine")
    (around.workspace / ".vscode").symlink_to("settings")

    output = await _in("bubblewrap", around, "echo x > .vscode/a; rm .vscode; mkdir .vscode; echo x > .vscode/a")

    assert (around.workspace / ".vscode").is_symlink()
    assert (around.workspace / ".vscode" / "a").read_text() == "mine"
    assert f"[the sandbox restored protected names: {around.workspace}/.vscode]" in output


def _git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Me", "-c", "user.email=me@here")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


_COMMIT = "echo x > file; git add -A; git -c user.name=Me -c user.email=me@here commit -qm one; git status --short"


async def test_a_commit_works_and_what_git_runs_later_cannot_be_changed(around: ToolEnvironment) -> None:
    _git(around.workspace, "init", "-q")
    attacks = (
        "echo x > .git/hooks/pre-commit; git config core.fsmonitor ./evil; mv .git git2; mv .git/config c; "
        "echo .. > .git/commondir; echo x > .git/config.worktree"
    )

    output = await _in("bubblewrap", around, f"{_COMMIT}; git log --oneline; {attacks}")

    git = around.workspace / ".git"
    assert _git(around.workspace, "log", "--format=%s", "--name-only").split() == ["one", "file"]
    assert "fsmonitor" not in (git / "config").read_text()
    assert [name for name in ("hooks/pre-commit", "commondir", "config.worktree") if (git / name).exists()] == []
    assert "??" not in output


async def test_commands_that_git_would_run_when_it_continues_cannot_be_planted_or_changed(
    around: ToolEnvironment,
) -> None:
    _git(around.workspace, "init", "-q")
    _git(around.workspace, "commit", "-q", "--allow-empty", "-m", "zero")
    git = around.workspace / ".git"
    (git / "sequencer").mkdir()
    (git / "sequencer" / "todo").write_text("pick")
    (git / "BISECT_LOG").write_text("good")

    plant = "mkdir .git/$d; echo exec ./evil > .git/$d/git-rebase-todo"
    change = "echo evil > .git/sequencer/todo; rm -rf .git/sequencer; echo evil > .git/BISECT_LOG"
    await _in("bubblewrap", around, f"for d in rebase-merge rebase-apply; do {plant}; done; {change}")

    assert not any((git / name).exists() for name in ("rebase-merge", "rebase-apply"))
    assert ((git / "sequencer" / "todo").read_text(), (git / "BISECT_LOG").read_text()) == ("pick", "good")


async def test_a_commit_works_in_a_worktree_of_another_folder(around: ToolEnvironment, tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    _git(main, "init", "-q")
    _git(main, "commit", "-q", "--allow-empty", "-m", "zero")
    around.workspace.rmdir()
    _git(main, "worktree", "add", "-q", str(around.workspace))

    attacks = f"echo x > {main}/.git/hooks/pre-commit; echo x >> {main}/.git/config; echo x > {main}/file"
    await _in("bubblewrap", around, f"{_COMMIT}; {attacks}; echo gitdir: /elsewhere > .git")

    assert _git(around.workspace, "log", "--format=%s").split() == ["one", "zero"]
    assert not (main / "file").exists()
    assert not (main / ".git" / "hooks" / "pre-commit").exists()
    assert _git(main, "config", "--list")


def _make_repository(layout: str, folder: Path) -> tuple[Path, Path]:
    """A workspace whose repository lies elsewhere, and the folder of that."""
    main, workspace, elsewhere = folder / "main", folder / "ws", folder / "elsewhere.git"
    main.mkdir()
    if layout in ("subfolder", "subfolder of a worktree"):
        _git(main, "init", "-q")
        (main / "kept").write_text("kept")
        _git(main, "add", "kept")
        _git(main, "commit", "-q", "-m", "zero")
        git = main / ".git"
        if layout != "subfolder":
            _git(main, "worktree", "add", "-q", str(folder / "tree"))
            main, git = folder / "tree", git / "worktrees" / "tree"
        (main / "pkg").mkdir()
        return main / "pkg", git
    if layout == "separate folder":
        _git(workspace, "init", "-q", "--separate-git-dir", str(elsewhere))
    else:
        _git(workspace, "init", "-q")
        (workspace / ".git").rename(elsewhere)
        (workspace / ".git").symlink_to(elsewhere)
    return workspace, elsewhere


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize("layout", ["subfolder", "subfolder of a worktree", "separate folder", "link"])
async def test_commands_commit_where_the_repository_lies_outside_or_it_is_known_that_they_cannot(
    kind: str, around: ToolEnvironment, tmp_path: Path, layout: str, *, is_allowed: bool
) -> None:
    workspace, git = _make_repository(layout, tmp_path.resolve())
    around.workspace = workspace
    shared = (git.parents[1] if git.parent.name == "worktrees" else git,)
    made = sandbox(kind, workspace, writable=shared if is_allowed else (), repository=repository_above(workspace))
    attacks = f"echo x > {shared[0]}/hooks/pre-commit; echo x >> {shared[0]}/config; echo x > ../kept"

    await _run(around, f"{_COMMIT} -a; {attacks}", sandbox=made)

    can_commit = is_allowed or (kind == "bubblewrap" and layout.startswith("subfolder"))
    assert made.closed_repository() == (None if can_commit else git)
    assert ("one" in _git(workspace, "log", "--all", "--format=%s").split()) == can_commit
    if kind == "bubblewrap":
        assert not (shared[0] / "hooks" / "pre-commit").exists()
        assert _git(workspace, "config", "--list")
    if layout.startswith("subfolder"):
        assert (_git(workspace, "show", "HEAD:kept"), (workspace.parent / "kept").read_text()) == ("kept", "kept")


async def test_the_end_of_one_command_does_not_open_the_sandbox_of_another(around: ToolEnvironment) -> None:
    box = sandbox("bubblewrap", around.workspace)
    waiting = "touch ready; until test -e go; do sleep 0.02; done; mkdir -p .vscode; echo x > .vscode/a"
    long = asyncio.ensure_future(_run(around, waiting, sandbox=box, call_id="c1"))
    await until((around.workspace / "ready").exists)

    await _run(around, "true", sandbox=box, call_id="c2")
    (around.workspace / "go").touch()
    output = (await long).output

    assert ("Read-only file system" in output, (around.workspace / ".vscode").exists()) == (True, False)


async def test_without_a_backend_a_command_runs_or_is_refused_as_configured(around: ToolEnvironment) -> None:
    rules = SandboxRules((around.workspace,))
    nothing = SandboxBackend("none", why="nothing to make one of")

    loose = await _run(around, "echo ran", sandbox=Sandbox(rules, look=lambda: nothing))
    strict = await _run(around, "touch witness", sandbox=Sandbox(rules, is_required=True, look=lambda: nothing))

    assert (loose.output, loose.metadata["sandbox"]) == ("ran\n[exit code 0]", "none")
    assert strict.metadata == {"error_type": "permission"}
    assert 'nothing to make one of. With the setting sandbox = "required"' in str(strict.error)
    assert not (around.workspace / "witness").exists()


def test_a_private_folder_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"graph-agent-{os.geteuid()}").mkdir(mode=0o777)
    (tmp_path / f"graph-agent-{os.geteuid()}").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    box = sandbox("bubblewrap", tmp_path)

    with pytest.raises(SandboxUnavailable, match="only you can enter"), box.launch("t"):
        pass


@pytest.mark.slow
def test_the_sandbox_holds_for_another_user(kind: str) -> None:
    command = (
        "echo x > file && cat file; id -u; unshare -U true && echo made; "
        "mkdir -p .vscode && echo x > .vscode/a && echo planted; grep CapEff /proc/self/status"
    )
    with sandboxed_process(kind, OTHER_USER) as process:
        output, metadata = process.run(command)

    assert (output.startswith(f"x\n{OTHER_USER}\n"), metadata["sandbox"]) == (True, kind)
    planted = [] if kind == "bubblewrap" else ["planted"]
    assert [word for word in ("made", "planted") if word in output] == planted
    assert "CapEff:\t0000000000000000" in output


async def test_a_folder_of_the_path_cannot_be_changed_or_replaced(around: ToolEnvironment) -> None:
    programs = around.workspace / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "tool").write_text("mine")
    (around.workspace / "linked").symlink_to("venv")
    protected = (programs, around.workspace / "linked" / "bin", around.workspace / "missing", Path("/usr/bin"))
    command = (
        "echo x > venv/bin/tool; echo x > venv/bin/new; rm -f venv/bin/tool; mv venv/bin away; mv venv away; "
        "rm linked; mkdir -p linked/bin && echo x > linked/bin/tool; echo y > venv/other"
    )

    output = await _in("bubblewrap", around, command, protected=protected)

    assert [path.name for path in programs.iterdir()] == ["tool"]
    assert (programs / "tool").read_text() == "mine"
    assert ((around.workspace / "linked").is_symlink(), (around.workspace / "venv" / "other").exists()) == (
        True,
        True,
    )
    assert f"[the sandbox restored protected names: {around.workspace}/linked]" in output
