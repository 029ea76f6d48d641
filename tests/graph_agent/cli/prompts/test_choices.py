import pytest

from graph_agent.cli.prompts.choices import APPROVAL, RECOVERY, choice_line, match_choice


@pytest.mark.parametrize(
    ("line", "key"),
    [("y", "y"), (" YES ", "y"), ("n", "n"), ("r", "r"), ("s", "s"), ("stop", "s"), ("e", "e")],
)
def test_a_key_or_its_word_is_an_answer(line: str, key: str) -> None:
    assert match_choice(line, APPROVAL) == key


@pytest.mark.parametrize("line", ["", " ", "yy", "yn", "ja", "y n", "d"])
def test_anything_else_is_no_answer(line: str) -> None:
    assert match_choice(line, APPROVAL) is None


def test_the_prompt_shows_each_key_in_brackets() -> None:
    assert [choice_line(APPROVAL), choice_line(RECOVERY)] == [
        "[y]es  [a]lways  [e]dit  [n]o  no, with a [r]eason  [s]top the turn > ",
        "[r]etry  [d]one  [c]ancel > ",
    ]
