"""Hosts of one machine: each has a name, a network and a link of its own, which can be cut.

Linux alone, and root alone, can make them: namespaces, joined to this one by a pair of virtual interfaces.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.fakes.forked_command import enter_namespace

__all__ = ["Host", "hosts", "hosts_missing"]


@dataclass(frozen=True)
class Host:
    """A host; it lasts as long as the process that holds its namespaces."""

    name: str
    pid: int
    """The process that holds them."""
    address: str
    """Where it reaches this machine."""
    link: str
    """This machine's end of its link."""

    def cut(self) -> None:
        """Lose whatever is sent on its link in either direction, until `heal`."""
        _ip("link", "set", self.link, "down")

    def heal(self) -> None:
        """Undo `cut`."""
        _ip("link", "set", self.link, "up")

    def within(self, work: Callable[[], None]) -> None:
        """Do something in its network, on a thread of its own: sockets made there stay there."""
        errors: list[BaseException] = []

        def enter() -> None:
            try:
                enter_namespace(self.pid, "net")
                work()
            except OSError as error:
                errors.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]


def hosts_missing() -> str:
    """Why this machine cannot make hosts; empty if it can."""
    if os.geteuid() != 0:
        return "the tests do not run as root"
    if not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return "iproute2 or util-linux is missing"
    tried = subprocess.run(["unshare", "--net", "--uts", "true"], capture_output=True, check=False)
    return "namespaces are not allowed here" if tried.returncode else ""


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many new hosts; they end with the block, or with this process."""
    with ExitStack() as stack:
        yield [stack.enter_context(_host(number)) for number in range(1, count + 1)]


@contextmanager
def _host(number: int) -> Iterator[Host]:
    name = f"host{number}"
    command = [
        "unshare",
        "--net",
        "--uts",
        "sh",
        "-c",
        f"hostname {name} && ip link set lo up && echo ready && cat",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        link, network = f"ga{os.getpid()}-{number}", f"10.{200 + os.getpid() % 50}.{number}"
        try:
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            _ip("addr", "add", f"{network}.1/30", "dev", link)
            _ip("link", "set", link, "up")
            inside = f"ip addr add {network}.2/30 dev eth0 && ip link set eth0 up"
            subprocess.run(["nsenter", "-t", str(holder.pid), "--net", "sh", "-c", inside], check=True)
            yield Host(name, holder.pid, f"{network}.1", link)
        finally:
            # A socket that is still open keeps the network, and with it this end of the link.
            subprocess.run(["ip", "link", "delete", link], capture_output=True, check=False)
            holder.kill()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
