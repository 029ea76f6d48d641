import stat
from pathlib import Path

from graph_agent.mcp.transport import ServerLog


def test_of_a_flood_the_latest_stays_and_the_file_stays_small(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    log.begin()

    for number in range(300):
        log.write(b"x" * 10_000 + b"\n%d\n" % number)

    assert log.path.stat().st_size < 1024 * 1024 + 20_000
    assert log.last_lines(1) == ("299",)


def test_a_new_life_begins_with_nothing_said(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    before = log.last_lines(3)
    log.begin()
    log.write("größer\n\n  spaced \n".encode())
    log.note_invalid_output(" first\n")
    log.note_invalid_output("second")
    told = (log.last_lines(2), log.invalid_output)
    log.begin()

    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert (before, told, log.last_lines(2), log.invalid_output) == ((), (("größer", "spaced"), "first"), (), "")
