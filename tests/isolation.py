"""Keeps a test apart from the person who runs it and from the network. Knows nothing of pytest."""

import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["clean_environment", "interrupts_heard", "loopback_only"]

_PRIVATE_PREFIXES = ("GRAPH_AGENT_", "OPENAI_", "XDG_", "LANGCHAIN_", "LANGSMITH_", "LANGGRAPH_", "PG")
_PRIVATE_NAMES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "no_color",
    "columns",
    "lines",
    "force_color",
)


@contextmanager
def clean_environment(home: Path) -> Iterator[None]:
    """Run with an empty home folder and without settings or keys; the old environment comes back afterwards."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_PRIVATE_PREFIXES) or name.lower() in _PRIVATE_NAMES:
            del os.environ[name]
    # Last on PATH, where hints find this program under its name.
    path = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    os.environ |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PATH": path}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def interrupts_heard() -> None:
    """Undo what a script does to a command it starts with `&`: all that it starts in turn would ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def loopback_only() -> Iterator[list[str]]:
    """Refuse connections and look-ups beyond this machine; yields the list of what was refused."""
    refused: list[str] = []
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guard(host: Any) -> None:
        if not _is_local(host):
            refused.append(str(host))
            raise PermissionError(f"{host!r} is not on this machine, and tests reach nothing else")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        guard(address[0] if isinstance(address, tuple) else None)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        guard(address[0] if isinstance(address, tuple) else None)
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        if not _is_number(host):
            guard(host)
        return look_up(host, *args, **options)

    with (
        patch.object(socket.socket, "connect", guarded_connect),
        patch.object(socket.socket, "connect_ex", guarded_connect_ex),
        patch.object(socket, "getaddrinfo", guarded_look_up),
    ):
        yield refused


def _is_number(host: Any) -> bool:
    """Whether looking the host up asks nobody: it is an address, in any spelling the system reads as one."""
    try:
        socket.inet_aton(str(host))
    except OSError:
        return ":" in str(host)
    return True


def _is_local(host: Any) -> bool:
    """Whether a host is this machine; None stands for a local socket or for "listen anywhere"."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
