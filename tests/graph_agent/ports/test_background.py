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


def test_a_process_that_has_ended_does_not_run_even_before_its_parent_collects_it() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    uncollected = process_started(child.pid)

    child.wait()
    assert (uncollected, process_started(child.pid)) == (None, None)
