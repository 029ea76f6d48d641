"""The real command in a process of its own that need not load its modules: it begins in milliseconds.

A fork server has loaded everything and forks for each command; it has one thread and keeps nothing, so a
command is as new as one that was started by hand, but for the state of modules that were only imported. It has its
own streams, environment and session, and dies by signals like any other. What is about starting itself (imports,
the current folder, streams of another encoding) is started for real.
"""

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.crash.forked_commands import load

__all__ = ["ForkedProcess", "Start", "enter_namespace", "is_forkable", "run_forked", "start", "start_forked"]

_ROOT = Path(__file__).parents[2]
_MORE = (
    "anyio._backends._asyncio",
    "graph_agent.acp.server",
    "graph_agent.acp.session",
    "graph_agent.app.rewind",
    "graph_agent.app.thread_import",
    "graph_agent.app.threads",
    "graph_agent.cli.chat.chat",
    "graph_agent.cli.chat.read_commands",
    "graph_agent.cli.chat.start",
    "graph_agent.cli.views.calls",
    "graph_agent.cli.views.mcp",
    "graph_agent.cli.views.memory",
    "graph_agent.cli.views.tasks",
    "graph_agent.cli.views.thread_files",
    "graph_agent.cli.views.time_travel",
    "graph_agent.mcp.servers",
    "graph_agent.model.openai.endpoint",
    "graph_agent.storage.postgres.database",
    "graph_agent.storage.sqlite.read_store",
    "graph_agent.worker.runner",
    "httpcore2",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "mcp.client.streamable_http",
    "openai.lib.streaming.chat",
    "openai.resources.chat",
    "prompt_toolkit.key_binding.bindings.search",
    "rich._unicode_data.unicode17-0-0",
    "tests.fakes.scripted_session",
)
_MOST_BYTES = 1024 * 1024
_TIMEOUT_S = 60.0


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@dataclass(frozen=True)
class Start:
    """What is started: `python -m MODULE ARGUMENTS`."""

    arguments: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    module: str = "graph_agent"
    uid: int | None = None
    """Another user; only root may become one."""
    is_on_terminal: bool = False
    """Its streams are a terminal of its own."""
    umask: int = field(default_factory=_umask)
    host: int | None = None
    """A process whose network and host name it gets; only root may ask for that."""
    preloaded: tuple[tuple[str, str], ...] = ()
    """Environment of a fork server of its own: for a library that has to be there before Python is."""


class ForkedProcess:
    """A process that runs; used like one of `subprocess.Popen`."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """Negative: the signal that killed it."""
        self.stdin = self.stdout = -1
        """Descriptors, if it was started with pipes; whoever reads and writes closes them."""
        self._line = line
        self._hang_up = weakref.finalize(self, line.close)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            self._collect()
        return self.returncode

    def wait(self, timeout: float = _TIMEOUT_S) -> int:
        """Its exit code, once it has ended.

        Raises:
            TimeoutExpired: it takes longer.
        """
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self._collect()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal; it may have ended already, and its id is nobody else's before that was noticed."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill -9."""
        self.send_signal(signal.SIGKILL)

    def _collect(self) -> None:
        # The first says that it has ended; only now may its id become another's.
        assert self._line.recv(1)
        self._line.sendall(b"w")
        self.returncode = int(self._line.recv(64))
        self._hang_up()


def run_forked(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: str, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run `graph-agent ARGUMENTS` to its end; with the options of `Start`.

    Raises:
        TimeoutExpired: it takes longer than a minute, and was killed.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin.encode())
        source.seek(0)
        streams = [file.fileno() for file in (source, out, err)]
        process = start(Start(arguments, cwd, environment, **options), streams)
        try:
            code = process.wait()
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        texts = [_text(file) for file in (out, err)]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


def start_forked(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stderr: Path
) -> ForkedProcess:
    """Start `graph-agent ARGUMENTS` with pipes for its input and output."""
    (source, stdin), (stdout, out) = os.pipe(), os.pipe()
    with stderr.open("ab") as err:
        process = start(Start(arguments, cwd, environment), (source, out, err.fileno()))
    os.close(source)
    os.close(out)
    process.stdin, process.stdout = stdin, stdout
    return process


def start(asked: Start, streams: Sequence[int]) -> ForkedProcess:
    """Start it with these descriptors as its input, output and errors."""
    body = json.dumps(asdict(asked), default=os.fspath).encode()
    line = socket.socket(socket.AF_UNIX)
    line.connect(_fork_server(asked.preloaded))
    socket.send_fds(line, [len(body).to_bytes(4, "big")], list(streams))
    line.sendall(body)
    return ForkedProcess(int.from_bytes(line.recv(8), "big"), line)


def is_forkable(environment: Mapping[str, str]) -> bool:
    """Whether nothing in the environment is about how Python starts."""
    return all(not name.startswith("PYTHON") or os.environ.get(name) == text for name, text in environment.items())


def enter_namespace(pid: int, kind: str) -> None:
    """Move the calling thread into a namespace that a process is in; only root may do that."""
    with Path(f"/proc/{pid}/ns/{kind}").open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"the {kind} namespace of process {pid} cannot be entered")


def _text(file: Any) -> str:
    file.seek(0)
    content: bytes = file.read()
    return content.decode()


@cache
def _fork_server(preloaded: tuple[tuple[str, str], ...] = ()) -> str:
    """Address of the fork server of this process; it ends with it, killed or not."""
    folder = tempfile.mkdtemp(prefix="fork-server-")
    address = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=_ROOT,
        env={**os.environ, **dict(preloaded)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(_end, server, folder)
    return address


def _end(server: "subprocess.Popen[bytes]", folder: str) -> None:
    server.kill()
    server.communicate()
    Path(folder, "socket").unlink(missing_ok=True)
    Path(folder).rmdir()


def _serve(address: str) -> None:
    load()
    for part in _MORE:
        importlib.import_module(part)
    # Collections in a command then leave alone what was loaded before, which they would copy page by page.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        # Standard input ends with the tests, however they end.
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            line, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _attend(line)
                return
            line.close()


def _attend(line: socket.socket) -> None:
    """Fork the command and tell how it ended; in the command's own process this returns once it is over."""
    head, descriptors, _, _ = socket.recv_fds(line, 4, 3)
    body = b""
    while len(body) < int.from_bytes(head, "big"):
        body += line.recv(_MOST_BYTES)
    asked = Start(**json.loads(body))
    command = os.fork()
    if command == 0:
        line.close()
        _become(asked, descriptors)
        _end_as_a_process_does(_run(asked.module))
    for descriptor in descriptors:
        os.close(descriptor)
    # Nobody may be there any more to be told.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(command.to_bytes(8, "big"))
        os.waitid(os.P_PID, command, os.WEXITED | os.WNOWAIT)
        line.sendall(b"e")
        line.recv(1)
        _, status = os.waitpid(command, 0)
        line.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(module: str) -> int:
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, str):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


def _end_as_a_process_does(code: int) -> NoReturn:
    """End threads, run what was registered for the exit, and let what is forgotten complain.

    Only the modules are not taken apart, which takes longer than most commands.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter calls itself
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _become(asked: Start, descriptors: Sequence[int]) -> None:
    if asked.host is not None:
        enter_namespace(asked.host, "net")
        enter_namespace(asked.host, "uts")
    os.chdir(asked.cwd)
    os.umask(asked.umask)
    os.environ.clear()
    os.environ.update(asked.environment)
    if asked.is_on_terminal:
        os.setsid()
        fcntl.ioctl(descriptors[0], termios.TIOCSCTTY, 0)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - they are the streams
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115 - likewise
    sys.argv = ["", *asked.arguments]
    sys.path[0] = str(asked.cwd)
    random.seed()
    if asked.uid is not None:
        os.setgroups([])
        os.setgid(asked.uid)
        os.setuid(asked.uid)


if __name__ == "__main__":
    _serve(sys.argv[1])
