"""Loaded by Python itself where its folder stands in PYTHONPATH: notes what a process starts, reaches and runs.

Every process and connection goes through these events, whichever library asks for it. One JSON line each.
"""

import json
import os
import sys
from typing import Any

__all__: list[str] = []

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn")
_REACHES = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname")


def _watch() -> None:
    log, folder = os.environ["AUDIT_LOG"], os.environ["AUDIT_FOLDER"]
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(event: str, what: Any) -> None:
        os.write(sink, (json.dumps([event, what], default=repr) + "\n").encode())

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            note(event, arguments[:3])
        elif event in _REACHES:
            note(event, arguments[1:] if event.startswith("socket.c") else arguments)
        elif event == "exec" and getattr(arguments[0], "co_filename", "").startswith(folder):
            note(event, arguments[0].co_filename)

    sys.addaudithook(hook)


_watch()
