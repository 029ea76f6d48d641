import subprocess

from graph_agent.cli.views.format import format_time_and_age
from graph_agent.config.paths import blob_dir
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import text_of


def test_a_broken_off_command_is_told_with_output_and_what_still_runs(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",), checkpoint_id="c1")
    rows.call(record_of("executing", kind="execute", risk="high", started_at=START))
    FileBlobs(blob_dir(rows.path)).spool("t1", "call_a", 1).write_bytes(b"half\x1b[2J\nmore\n")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        started = process_started(left.pid)
        rows.journal("executing", process_group=left.pid, process_started=started, boot_id=boot_id())

        told = text_of(rows, "recover").splitlines()
        left.kill()

    assert told[:7] == [
        "call_a  bash  HIGH  attempt 1",
        "  thread t1: started but did not finish; it may have taken effect partly or fully",
        f"  started {format_time_and_age(START)}",
        "  │ {",
        '  │   "command": "make"',
        "  │ }",
        "  output so far:",
    ]
    assert told[7:9] == ["  │ half", "  │ more"]
    assert (
        f"  still running: pid {left.pid} (a retry waits until they exit; terminate them with --end-processes)"
        in told
    )
    assert told[-1].startswith("Resolve with: graph-agent recover")


def test_deciding_all_tells_each_and_nothing_where_nothing_is_left(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",), checkpoint_id="c1")
    rows.call(record_of("interrupted", reason="never_started"))
    rows.call(record_of("interrupted", "call_b", reason="never_started"))

    told = text_of(rows, "recover", "t1", "--all", "done", "--result", "built")

    assert told == ("done: call_a of thread t1\ndone: call_b of thread t1\nResume with: graph-agent resume t1\n")
    assert text_of(rows, "recover", "--all", "cancel") == "No interrupted calls.\n"
