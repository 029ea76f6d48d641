import pytest

from graph_agent.cli.render.markdown import Code

_LINES = ["def f(x):", '    """doc', "    of two lines", '    """', "", "    return 'a' * 3  # why"]


@pytest.mark.parametrize("language", ["python", "nonsense", ""])
def test_every_line_comes_back_as_it_was(language: str) -> None:
    code = Code(language)

    assert [code.line(line).plain for line in _LINES] == _LINES


def test_a_text_that_began_on_an_earlier_line_keeps_its_colour() -> None:
    code = Code("python")

    shown = [code.line(line) for line in _LINES]

    inside, last, first = ([span.style for span in shown[number].spans] for number in (2, 3, 0))
    assert (inside == last, bool(inside), bool(first)) == (True, True, True)


def test_a_long_text_keeps_its_colour_to_its_end_and_not_beyond() -> None:
    code = Code("python")
    first = [span.style for span in code.line("def f(): pass").spans]
    code.line('"""begins')

    inside = [[span.style for span in code.line(f"for line {number}").spans] for number in range(60)]
    code.line('ends"""')

    assert ({len(styles) for styles in inside}, inside[0] == inside[-1]) == ({1}, True)
    assert [span.style for span in code.line("def f(): pass").spans] == first
