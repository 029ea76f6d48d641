from tests.cases.bench import SetUp
from tests.fakes.openai_server import TC, TXT


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
