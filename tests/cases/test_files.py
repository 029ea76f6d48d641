import json
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

    chained = TCS(
        _write("new.txt", "a\n"), edit("e1", "new.txt", "a", "b"), edit("e2", "new.txt", "b", r"$1 \g<0> %s")
    )
    alone = TCS(_read("new.txt"), edit("e3", "new.txt", "nowhere", "x"))
    bench = set_up(chained, alone, TXT("ok"))

    waiting = bench.ask("go", "--thread", "t1")
    shown = [one["preview"]["text"] for one in bench.command.json("approvals", "list")["approvals"]]
    ended = bench.ask("--resume", "t1", "--approve", "all")

    assert (waiting.code, ended.ending, bench.read("new.txt")) == (3, (0, "ok"), b"$1 \\g<0> %s\n")
    assert ["depends on the calls ahead of it" in text for text in shown] == [False, True, True]
    assert ["was not found" in text for text in bench.results(3)] == [False, False, False, False, True]


def test_hidden_entries_are_skipped_with_a_count_and_shown_where_they_are_named(set_up: SetUp) -> None:
    paths = [".", ".github", ".github/workflows", "src", "src/.hidden"]
    bench = set_up(*(TC(f"c{number}", "ls", {"path": path}) for number, path in enumerate(paths)), TXT("ok"))
    for name in (".github/workflows/ci.yml", ".eslintrc.json", "src/.hidden/x.txt", "src/plain.txt"):
        file = bench.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")

    ran = bench.run()

    top, github, workflows, source, hidden = bench.results(6)
    assert ran.ending == (0, "ok")
    assert (".github" in top, ".eslintrc.json" in top, "src" in top, "2" in top) == (False, False, True, True)
    assert ("workflows" in github, "ci.yml" in workflows, "x.txt" in hidden) == (True, True, True)
    assert ("plain.txt" in source, ".hidden/" in source) == (True, False)


def test_reading_is_bounded_and_what_is_no_text_is_refused(set_up: SetUp) -> None:
    files = ["min.js", "binary.bin", "folder", "nothing.txt", "latin.txt", "empty.txt"]
    bench = set_up(
        *(TC(f"c{number}", "read_file", {"file_path": name}) for number, name in enumerate(files)), TXT("ok")
    )
    bench.write(
        min_js=b"stats;" * 108_334, binary_bin=bytes(range(256)) * 20, latin_txt=b"caf\xe9\n", empty_txt=b""
    )
    (bench.workspace / "folder").mkdir()

    ran = bench.run()

    minified, binary, folder, missing, latin, _ = bench.results(7)
    assert (ran.ending, bench.server.faults) == ((0, "ok"), [])
    assert ("stats" in minified, len(minified) <= 60_000) == (True, True)
    assert ["Error" in text for text in (binary, folder, missing)] == [True] * 3
    assert "caf\u00e9" in latin


def test_searches_find_what_they_name_and_a_wrong_pattern_is_an_error(set_up: SetUp) -> None:
    calls: list[tuple[str, dict[str, object]]] = [
        ("glob", {"pattern": ".github/workflows/*.yml"}),
        ("glob", {"pattern": "**/*.yml"}),
        ("grep", {"pattern": "-n"}),
        ("grep", {"pattern": "foo("}),
        ("grep", {"pattern": "foo(", "literal": True}),
        ("grep", {"pattern": "stats", "context": 1}),
    ]
    bench = set_up(*(TC(f"c{number}", tool, args) for number, (tool, args) in enumerate(calls)), TXT("ok"))
    bench.write(a_txt=b"x -n y\nfoo(bar\n", b_txt=b"stats\n", min_js=(b"x" * 1620 + b"stats") * 400)
    workflow = bench.workspace / ".github/workflows/ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.touch()

    ran = bench.run()

    named, dotted, option, invalid, literal, long = bench.results(7)
    assert (ran.ending, bench.server.faults) == ((0, "ok"), [])
    assert (".github/workflows/ci.yml" in named, "No file" in dotted) == (True, True)
    assert ("a.txt:1:x -n y" in option, "a.txt:2:foo(bar" in literal) == (True, True)
    assert "'foo(' is not a valid regular expression" in invalid
    assert ("b.txt:1:stats" in long, "1 long lines shortened" in long, len(long) < 60_000) == (True, True, True)


def test_a_file_that_was_read_in_part_and_overwritten_says_which_lines_were_never_seen(set_up: SetUp) -> None:
    read, write = {"file_path": "k.txt", "limit": 1}, {"file_path": "k.txt", "content": "x\n"}
    bench = set_up(TC("c1", "read_file", json.dumps(read)), TC("c2", "write_file", json.dumps(write)), TXT("ok"))
    bench.write(k_txt="1\n2\n3\n")

    ran = bench.run()

    unseen = " Lines 2 to 3 of its earlier content were never read in this conversation."
    assert (ran.ending, bench.results(3)[1]) == ((0, "ok"), f"Wrote k.txt (2 bytes, +1 -3 lines).{unseen}")
