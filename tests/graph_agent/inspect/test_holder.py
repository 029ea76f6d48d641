import os
import subprocess
import sys
from pathlib import Path

from graph_agent.inspect.holder import Lease, is_alive

_BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _lease(pid: int, started: str, *, boot_id: str = _BOOT, ended_at: str | None = None) -> Lease:
    return Lease(pid, started, boot_id, "here", "then", ended_at)


def test_a_running_process_with_the_noted_start_time_is_alive() -> None:
    assert is_alive(_lease(os.getpid(), _started(os.getpid())))


def test_a_reused_pid_an_earlier_boot_and_an_ended_lease_are_not_alive() -> None:
    started = _started(os.getpid())

    assert not is_alive(_lease(os.getpid(), f"{started}0"))
    assert not is_alive(_lease(os.getpid(), started, boot_id="another boot"))
    assert not is_alive(_lease(os.getpid(), started, ended_at="then"))


def test_a_killed_process_is_dead_even_before_its_parent_has_collected_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lease = _lease(process.pid, _started(process.pid))
    assert is_alive(lease)

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not is_alive(lease)
    process.communicate()
    assert not is_alive(lease)
