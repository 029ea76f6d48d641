import pytest

from graph_agent.cli.views.format import format_names


@pytest.mark.parametrize(
    ("names", "more", "shown"),
    [
        ([], 0, "nothing that git sees"),
        (["a"], 0, "a"),
        (["a", "b"], 3, "a, b and 3 more"),
        ([str(number) for number in range(10)], 5, "0, 1, 2, 3, 4, 5, 6, 7 and 7 more"),
    ],
)
def test_the_first_names_are_shown_and_the_others_counted(names: list[str], more: int, shown: str) -> None:
    assert format_names(names, more) == shown
