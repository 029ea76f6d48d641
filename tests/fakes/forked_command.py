"""The real command in a process of its own that need not load its modules: it begins in milliseconds.

A nursery process has loaded everything and forks for each command; it has one thread and keeps nothing, so a
command is as new as one that was started by hand, but for the state of modules that were only imported. What is
about starting itself (imports, the folder one stands in, streams of another encoding) is started for real.
"""

import atexit
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.crash.forked_commands import load

__all__ = ["ForkedProgram", "run_forked", "start_forked"]

_ROOT = Path(__file__).parents[2]
_MORE = (
    "graph_agent.__main__",
    "graph_agent.acp.server",
    "graph_agent.acp.session",
    "graph_agent.app.rewind",
    "graph_agent.app.thread_import",
    "graph_agent.app.threads",
    "graph_agent.cli.views.calls",
    "graph_agent.cli.views.thread_files",
    "graph_agent.cli.views.time_travel",
    "graph_agent.model.openai.endpoint",
)
_MOST_BYTES = 1024 * 1024
_TIMEOUT_S = 60.0


def run_forked(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: str, uid: int | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `graph-agent ARGUMENTS` to its end; as another user where a number is given, which root alone may.

    Raises:
        TimeoutExpired: it takes longer than a minute.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin.encode())
        source.seek(0)
        asked = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment), "uid": uid}
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(_nursery())
            line.settimeout(_TIMEOUT_S)
            body = json.dumps(asked).encode()
            socket.send_fds(line, [len(body).to_bytes(4, "big")], [file.fileno() for file in (source, out, err)])
            line.sendall(body)
            try:
                code = int(line.recv(64))
            except TimeoutError as late:
                raise subprocess.TimeoutExpired(list(arguments), _TIMEOUT_S) from late
        texts = [_text(file) for file in (out, err)]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


@dataclass(frozen=True)
class ForkedProgram:
    """A command that runs, with pipes to it."""

    pid: int
    stdin: int
    """Descriptors; whoever reads and writes closes them."""
    stdout: int
    _line: socket.socket

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; it may have ended already, and its id is nobody else's before `wait`."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Its exit code, once it has ended.

        Raises:
            TimeoutError: it takes longer than a minute.
        """
        try:
            self._line.sendall(b"w")
            return int(self._line.recv(64))
        finally:
            self._line.close()


def start_forked(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stderr: Path
) -> ForkedProgram:
    """Start `graph-agent ARGUMENTS` with pipes for its input and output."""
    asked = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment), "uid": None}
    body = json.dumps({**asked, "is_started": True}).encode()
    (source, stdin), (stdout, out) = os.pipe(), os.pipe()
    line = socket.socket(socket.AF_UNIX)
    line.connect(_nursery())
    line.settimeout(_TIMEOUT_S)
    with stderr.open("ab") as err:
        socket.send_fds(line, [len(body).to_bytes(4, "big")], [source, out, err.fileno()])
        line.sendall(body)
        pid = int.from_bytes(line.recv(8), "big")
    os.close(source)
    os.close(out)
    return ForkedProgram(pid, stdin, stdout, line)


def _text(file: Any) -> str:
    file.seek(0)
    content: bytes = file.read()
    return content.decode()


@cache
def _nursery() -> str:
    """Address of the nursery of this process; it ends with it, killed or not."""
    folder = tempfile.mkdtemp(prefix="nursery-")
    address = f"{folder}/socket"
    nursery = subprocess.Popen(
        [sys.executable, "-m", __name__, address], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert nursery.stdout is not None
    assert nursery.stdout.readline() == b"ready\n"
    atexit.register(_end, nursery, folder)
    return address


def _end(nursery: "subprocess.Popen[bytes]", folder: str) -> None:
    nursery.kill()
    nursery.communicate()
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
    asked = json.loads(body)
    command = os.fork()
    if command == 0:
        line.close()
        _become(asked, descriptors)
        _end_as_a_process_does(importlib.import_module("graph_agent.__main__").main())
    for descriptor in descriptors:
        os.close(descriptor)
    if asked.get("is_started"):
        line.sendall(command.to_bytes(8, "big"))
        line.recv(1)  # Until somebody waits for it, its id stays taken.
    _, status = os.waitpid(command, 0)
    line.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


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


def _become(asked: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - they are the streams
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115 - likewise
    sys.argv = ["graph-agent", *asked["arguments"]]
    sys.path[0] = asked["cwd"]
    random.seed()
    if asked["uid"] is not None:
        os.setgroups([])
        os.setgid(asked["uid"])
        os.setuid(asked["uid"])


if __name__ == "__main__":
    _serve(sys.argv[1])
