import pytest

from policy.brackets import closing_backtick, closing_parenthesis


@pytest.mark.parametrize(
    ("text", "end"),
    [("a)", 1), ("(a))b", 3), ("')')", 3), ("\\))", 2), ('"\\")")', 5), ("a", 1), ("", 0)],
)
def test_the_closing_parenthesis_is_found_outside_of_quotes(text: str, end: int) -> None:
    assert closing_parenthesis(text, 0) == end


@pytest.mark.parametrize(("text", "end"), [("a`b", 1), ("a\\``", 3), ("a", 1), ("a\\", 2)])
def test_the_closing_backtick_is_the_first_unescaped_one(text: str, end: int) -> None:
    assert closing_backtick(text, 0) == end
