import os

from tests.cases.bench import SetUp
from tests.fakes.openai_server import DELAY, TC, TCS, TXT
from tests.scenarios.command import until


def _read(name: str) -> tuple[str, str, dict[str, str]]:
    return f"r-{name}", "read_file", {"file_path": name}


def _write(name: str, content: str) -> tuple[str, str, dict[str, str]]:
    return f"w-{name}", "write_file", {"file_path": name, "content": content}


def test_a_file_that_is_written_over_keeps_its_line_ends_and_a_new_one_gets_the_bytes_given(set_up: SetUp) -> None:
    names = ["crlf.txt", "lf.txt", "bom.txt", "bare.txt"]
    bench = set_up(
        TCS(*(_read(name) for name in names)),
        TCS(
            _write("crlf.txt", "x\ny\n"),
            _write("lf.txt", "x\ny\n"),
            _write("bom.txt", "x\n"),
            _write("bare.txt", "x"),
            _write("new.txt", "a\r\nb\n"),
            _write("deep/er/new.txt", "$1 \\g<0> %s {x} caf\u00e9"),
        ),
        TXT("ok"),
    )
    bench.write(crlf_txt=b"a\r\nb\r\nc\r\n", lf_txt=b"a\n", bom_txt=b"\xef\xbb\xbfa\r\n", bare_txt=b"a\nb")

    ran = bench.run()

    written = {name: bench.read(name) for name in (*names, "new.txt", "deep/er/new.txt")}
    assert ran.ending == (0, "ok")
    assert written == {
        "crlf.txt": b"x\r\ny\r\n",
        "lf.txt": b"x\ny\n",
        "bom.txt": b"\xef\xbb\xbfx\r\n",
        "bare.txt": b"x",
        "new.txt": b"a\r\nb\n",
        "deep/er/new.txt": "$1 \\g<0> %s {x} caf\u00e9".encode(),
    }


def test_a_file_touched_since_it_was_read_may_be_written_and_one_changed_since_may_not(set_up: SetUp) -> None:
    bench = set_up(
        TCS(_read("same.txt"), _read("changed.txt")),
        DELAY(0.5, TCS(_write("same.txt", "new\n"), _write("changed.txt", "new\n"), _write("unread.txt", "new\n"))),
        TXT("ok"),
    )
    bench.write(same_txt="k = 1\n", changed_txt="k = 1\n", unread_txt="k = 1\n")
    process = bench.command.start("run", "go", "--mode", "bypassPermissions")
    until(lambda: len(bench.server.bodies) == 2)

    bench.write(same_txt="k = 1\n", changed_txt="k = 2\n")
    os.utime(bench.workspace / "same.txt", (1, 1))
    code = process.wait(timeout=30)

    assert (code, [bench.read(name) for name in ("same.txt", "changed.txt", "unread.txt")]) == (
        0,
        [b"new\n", b"k = 2\n", b"k = 1\n"],
    )
    assert ["read" in text for text in bench.results(3)[3:]] == [True, True]


def test_a_write_that_cannot_be_done_is_an_error_and_leaves_nothing(set_up: SetUp) -> None:
    bench = set_up(
        TC("c1", "write_file", {"file_path": "folder", "content": "x"}),
        TC("c2", "write_file", {"file_path": "f.txt/below.txt", "content": "x"}),
        TC("c3", "write_file", {"file_path": "", "content": "x"}),
        TC("c4", "write_file", {"file_path": "pipe", "content": "x"}),
        TXT("ok"),
    )
    bench.write(f_txt="kept\n")
    (bench.workspace / "folder").mkdir()
    os.mkfifo(bench.workspace / "pipe")

    ran = bench.run()

    names = sorted(path.name for path in bench.workspace.iterdir())
    assert (ran.ending, names, bench.read("f.txt")) == ((0, "ok"), ["f.txt", "folder", "pipe"], b"kept\n")
    assert ["Error" in text for text in bench.results(5)] == [True] * 4


def test_an_edit_waits_for_what_the_calls_before_it_in_the_message_make_of_the_file(set_up: SetUp) -> None:
    def edit(call_id: str, name: str, old: str, new: str) -> tuple[str, str, dict[str, str]]:
        return call_id, "edit_file", {"file_path": name, "old_string": old, "new_string": new}

    chained = TCS(_write("new.txt", "a\n"), edit("e1", "new.txt", "a", "b"), edit("e2", "new.txt", "b", "c"))
    alone = TCS(_read("new.txt"), edit("e3", "new.txt", "nowhere", "x"))
    bench = set_up(chained, alone, TXT("ok"))

    waiting = bench.ask("go", "--thread", "t1")
    shown = [one["preview"]["text"] for one in bench.command.json("approvals", "list")["approvals"]]
    ended = bench.ask("--resume", "t1", "--approve", "all")

    assert (waiting.code, ended.ending, bench.read("new.txt")) == (3, (0, "ok"), b"c\n")
    assert ["depends on the calls ahead of it" in text for text in shown] == [False, True, True]
    assert ["was not found" in text for text in bench.results(3)] == [False, False, False, False, True]
