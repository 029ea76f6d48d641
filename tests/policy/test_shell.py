import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.shell import read_shell


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", ["git status"]),
        ("  git   status  ", ["git status"]),
        ('git commit -m "title\n\nbody"', ["git commit -m title\n\nbody"]),
        ("git log --format='%h <%ae>'", ["git log --format=%h <%ae>"]),
        ("a && b || c; d | e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a 2>&1 | b >/dev/null", ["a", "b"]),
        ("a &>/dev/null", ["a"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a#b", ["a#b"]),
        (r"\rm -r x", ["rm -r x"]),
        ("g'i't", ["git"]),
        ("echo ''", ["echo "]),
        ('echo "a\\"b" \'c\'', ['echo a"b c']),
        ("X=1 git log", ["X=1 git log"]),
        ("echo $", ["echo $"]),
    ],
)
def test_plain_texts_are_read_as_the_shell_would(text: str, commands: list[str]) -> None:
    found = read_shell(text)

    assert ([command.text for command in found.commands], found.not_plain) == (commands, "")


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("echo $(curl h)", "curl h"),
        ('echo "now $(curl h)"', "curl h"),
        ("echo `curl h`", "curl h"),
        ("echo ${x:-$(curl h)}", "curl h"),
        ("git log --grep=\"$(curl 'h)')\"", "curl h)"),
        ("diff <(curl h) b", "curl h"),
        ("(curl h)", "curl h"),
        ("if true; then curl h; fi", "curl h"),
        ("for x in a b; do curl h; done", "curl h"),
        ("f() { curl h; }", "curl h"),
        ("cat <<EOF\n$(curl h)\nEOF", "curl h"),
        ("cat <<EOF; curl h\nhi\nEOF", "curl h"),
        ("! curl h", "curl h"),
        ("case x in x) curl h;; esac", "curl h"),
    ],
)
def test_nested_commands_are_found_and_make_a_text_not_plain(text: str, inner: str) -> None:
    found = read_shell(text)

    assert inner in [command.text for command in found.commands]
    assert found.not_plain


@pytest.mark.parametrize(
    "text",
    [
        "echo $HOME", "echo \"$x\"", "ls *.py", "ls ~", "echo {a,b}", "a > b", "a >> b", "a < b", "a >&b",
        "a &> b", "a >| b",
        "a \\\nb", "a\rb", "a\x0bb", "a\u202eb", "a\u200bb", "echo 'open", 'echo "open', "cat <<'EOF'\nx\nEOF",
        "a $'b'", "x" * 9000,
        "[[ a ]]", "{ a; }", "echo a\x00b", "cat <<< a",
    ],
)  # fmt: skip
def test_what_the_shell_would_change_is_not_plain(text: str) -> None:
    assert read_shell(text).not_plain


def test_write_targets_are_listed() -> None:
    assert read_shell("a > b 2>> 'c d' &> e < f >&2 2>&1").written == ("b", "c d", "e")


def test_a_quoted_here_document_is_data() -> None:
    found = read_shell("cat <<'EOF'\n$(curl h)\nrm -rf /\nEOF\nls")

    assert [command.text for command in found.commands] == ["cat", "ls"]


@pytest.mark.parametrize("text", ["a >&1\\", r"\2>>0&>/dev/null", "a >>0>/dev/null", "a >&'1'"])
def test_a_number_that_is_a_file_is_not_taken_for_a_descriptor(text: str) -> None:
    assert read_shell(text).not_plain


@given(st.text(alphabet="ab '\"\\$`()<>|&;{}#\n~*=-", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert read_shell(text) == read_shell(text)


@given(st.lists(st.text(alphabet="ab '\"\\$`()<>|&;{}#~*=-", min_size=1, max_size=10), min_size=1, max_size=5))
def test_words_in_single_quotes_come_back_as_they_were(words: list[str]) -> None:
    quoted = "echo " + " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)

    found = read_shell(quoted)

    assert [command.words for command in found.commands] == [("echo", *words)]
    assert found.not_plain == ""
