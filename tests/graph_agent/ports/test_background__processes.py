import os
import subprocess
import time

from graph_agent.ports.background import boot_id, process_started


def test_this_boot_has_one_name() -> None:
    assert boot_id() == boot_id() != ""


def test_a_running_process_has_a_start_time_of_its_own() -> None:
    time.sleep(0.02)
    child = subprocess.Popen(["sleep", "60"])

    started = process_started(child.pid)

    child.kill()
    child.wait()
    assert started is not None
    assert started != process_started(os.getpid()) == process_started(os.getpid())


def test_a_process_that_is_dead_but_not_collected_does_not_run() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    started = process_started(child.pid)

    child.wait()
    assert started is None


def test_a_pid_without_a_process_has_no_start_time() -> None:
    child = subprocess.Popen(["true"])
    child.wait()

    assert process_started(child.pid) is None
