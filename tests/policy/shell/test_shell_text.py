import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.shell.shell_text import ShellText, SimpleCommand, Unparsable, parse_shell, unparsed_shell
from tools.shell_ops.bash_parser import parse_bash

_ODD = "ab '\"\\$`()<>|&;{}#\n~*=-"


def _parse(text: str) -> ShellText:
    return parse_shell(text, parse_bash)


def _nothing_parses(text: str) -> Mapping[str, Any]:
    raise Unparsable(f"no parser for {text[:3]}")


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", ["git status"]),
        ("  git   status  ", ["git status"]),
        ('git commit -m "title\n\nbody"', ["git commit -m title\n\nbody"]),
        ("git log --format='%h <%ae>'", ["git log --format=%h <%ae>"]),
        ("a && b || c; d | e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a 2>&1 | b >/dev/null", ["a", "b"]),
        ("a > b; c < d", ["a", "c"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a#b", ["a#b"]),
        (r"\rm -r x", ["rm -r x"]),
        ("a \\\n b", ["a b"]),
        ("g'i't", ["git"]),
        ("echo ''", ["echo "]),
        ("X=1 git log", ["X=1 git log"]),
        ("export A=1 B", ["export A=1 B"]),
        ("echo $", ["echo $"]),
        ("git show HEAD~1 stash@{0} HEAD^", ["git show HEAD~1 stash@{0} HEAD^"]),
        ("ls *.py", ["ls *.py"]),
        ("(a; b) && { c; }", ["a", "b", "c"]),
        ("if a; then b; else c; fi", ["a", "b", "c"]),
        ("! a", ["a"]),
        ("time a", ["time", "a"]),
        ("cat <<'EOF'\n$(curl h)\nrm -rf /\nEOF\nls", ["cat", "ls"]),
        ("cat <<< a", ["cat"]),
    ],
)
def test_clear_texts_are_parsed_as_the_shell_would(text: str, commands: list[str]) -> None:
    found = _parse(text)

    assert ([command.text for command in found.commands], found.unclear_reason) == (commands, "")


@pytest.mark.parametrize(
    "text",
    [
        "echo $(curl h)", 'echo "now $(curl h)"', "echo `curl h`", "echo ${x:-$(curl h)}",
        "git log --grep=\"$(curl h)\"", "diff <(curl h) b", "for x in a b; do curl h; done", "f() { curl h; }",
        "cat <<EOF\n$(curl h)\nEOF", "cat <<-EOF\n\t`curl h`\n\tEOF", "case $x in x) curl h;; esac",
        "case $(curl h) in x) a;; esac", "echo $((1 + $(curl h)))", "x[$(curl h)]=1", "[[ -n $(curl h) ]]",
        "coproc curl h", "a > $(curl h)", "select x in a; do curl h; done", "A=$(curl h) b", "export A=$(curl h)",
        "git log --grep=\"$(curl h; 'h)')\"",
    ],
)  # fmt: skip
def test_nested_commands_are_found_and_make_a_text_unclear(text: str) -> None:
    found = _parse(text)

    assert "curl h" in [command.text for command in found.commands]
    assert found.unclear_reason


@pytest.mark.parametrize(
    "text",
    [
        "echo $HOME", "echo \"$x\"", "ls ~", "echo {a,b}", "{a,b} c", "l* a", "a >&b", "a > $b", "a > *",
        "a {x}> b",
        "a\rb", "a\x0bb", "a\u202eb", "a\u200bb", "a \x00", "echo 'open", 'echo "open', "a $'b'", "a $\"b\"",
        "a # \\\nb", "a > b\\",
        "x" * 9000, "[[ a ]]", "((x++))", "a > /dev/tcp/h/80", "test -v 'a[$(id)]'", "let x=1",
        "a=(b)", "a $((1))", "cat <<'E F'\nx\nE F\n", "echo !(a)", "cd .. && a > b", "cd $x; a > b",
        "cd a; cd b; cd c; cd d; e > f", "while a; do cd b; done; c > d", "pushd x; a > b", ";;", "a |",
        "(" * 500 + ")" * 500,
    ],
)  # fmt: skip
def test_a_text_that_the_shell_may_read_otherwise_is_unclear(text: str) -> None:
    assert _parse(text).unclear_reason


def test_write_targets_and_files_read_are_listed() -> None:
    found = _parse("a > b 2>> 'c d' &> e < f >&2 2>&1 >/dev/null <> g")

    assert (found.written, found.read) == (("b", "c d", "e", "g"), ("f",))


def test_a_write_after_a_change_of_folder_may_happen_in_either_folder() -> None:
    found = _parse("cd a && cd b/c && x > y > /z")

    assert found.folders == ("", "a", "b/c", "a/b/c")
    assert found.written == ("y", "a/y", "b/c/y", "a/b/c/y", "/z", "/z", "/z", "/z")


def test_an_unparsable_text_is_unclear_and_its_commands_are_guessed() -> None:
    found = parse_shell("a && 'b' c", _nothing_parses)

    assert found == unparsed_shell("a && 'b' c", "no parser for a &")
    assert (SimpleCommand(("b", "c")) in found.runs, found.is_parsed) == (True, False)


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet=_ODD, max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert _parse(text) == _parse(text)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet=_ODD, min_size=1, max_size=10), min_size=1, max_size=5))
def test_words_in_single_quotes_come_back_as_they_were(words: list[str]) -> None:
    quoted = "echo " + " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)

    found = _parse(quoted)

    assert [command.words for command in found.commands] == [("echo", *words)]
    assert found.unclear_reason == ("" if "#" not in quoted or "\\\n" not in quoted else found.unclear_reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "sudo " + " ".join(f"sh z{number}" for number in range(1000)),
        "env " + " ".join(f"python3 'z;{number}'" for number in range(500)),
        "eval " + " ".join(f"'e; {number}'" for number in range(700)),
        "bash " + " ".join(f"'e; {number}'" for number in range(700)),
        "sed '" + "a b " * 1800 + "'",
    ],
)
def test_code_within_code_is_parsed_in_bounded_time(text: str) -> None:
    began = time.monotonic()

    parse_shell(text, parse_bash)

    assert time.monotonic() - began < 10


def test_a_text_with_too_many_pieces_of_code_is_guessed_and_unclear() -> None:
    pieces = " ".join(f"'a; {number}'" for number in range(50))

    few, many = _parse("bash -c 'a; b'"), _parse(f"bash {pieces} 'x; rm -rf y'")

    assert (few.unclear_reason, few.is_parsed) == ("", True)
    assert ("pieces of code" in many.unclear_reason, many.is_parsed) == (True, False)
    assert "rm -rf y" in [command.text for command in many.runs]


def test_a_repeated_piece_of_code_is_parsed_once() -> None:
    parsed: list[str] = []

    def counting(code: str) -> Mapping[str, Any]:
        parsed.append(code)
        return parse_bash(code)

    parse_shell("bash -c 'a; b' && sh -c 'a; b' && sudo sh -c 'a; b' && bash plain words", counting)

    assert [code for code in parsed if code == "a; b"] == ["a; b"]
    assert len(parsed) == 2
