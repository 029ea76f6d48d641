import os
from pathlib import Path

from tools.shell_ops.output import open_spool


def test_what_is_written_is_followed_piece_by_piece_and_whole_characters_only(tmp_path: Path) -> None:
    told: list[str] = []
    raw = "aé".encode()

    with open_spool(tmp_path / "s") as spool:
        os.write(spool.sink, raw[:2])
        spool.follow(told.append)
        os.write(spool.sink, raw[2:] + b"\n")
        spool.follow(told.append)
        spool.follow(told.append)

        assert (told, spool.size, spool.read(1, 2)) == (["a", "é\n"], 4, "é".encode())


def test_in_a_flood_only_the_newest_is_told(tmp_path: Path) -> None:
    told: list[str] = []

    with open_spool(tmp_path / "s") as spool:
        os.write(spool.sink, b"x" * 200_000 + b"end")
        spool.follow(told.append)

        assert [(len(text), text[-3:]) for text in told] == [(64 * 1024, "end")]


def test_a_spool_is_private_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "s"
    mask = os.umask(0)
    try:
        for _ in range(2):
            with open_spool(path) as spool:
                os.write(spool.sink, b"x")
    finally:
        os.umask(mask)

    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"xx", 0o600)


def test_a_spool_without_a_path_leaves_nothing_behind() -> None:
    with open_spool(None) as spool:
        os.write(spool.sink, b"abc")
        spool.cut(2)

        assert (spool.read(), os.fstat(spool.sink).st_nlink) == (b"ab", 0)
