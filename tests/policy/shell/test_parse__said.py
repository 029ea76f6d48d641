import pytest

from policy.shell.parse import said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("echo", "-n", "-e", "rm", "-e"), "rm -e"),
        (("/bin/echo", r"r\x6d"), "r\\x6d\nrm"),
        (("printf", "%s", "rm a"), "rm a"),
        (("printf", "%s %s;", "rm", "a", "rm", "b"), "rm a;rm b;"),
        (("printf", "5%% %d"), "5%% %d"),
        (("printf", "100%% %s", "x"), "100% x"),
        (("printf",), ""),
        (("cat", "x"), ""),
        ((), ""),
    ],
)
def test_what_is_said_is_told_from_the_words(words: tuple[str, ...], text: str) -> None:
    assert said(words) == text
