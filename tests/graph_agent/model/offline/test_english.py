from graph_agent.model.offline.chinese import CHINESE
from graph_agent.model.offline.commands import Form
from graph_agent.model.offline.english import ENGLISH


def misread(wordings: tuple[Form, ...]) -> list[tuple[str, str]]:
    """Examples that another wording of the language takes first, with its pattern."""
    return [
        (example, first.pattern.pattern)
        for wording in wordings
        for example in wording.examples
        for first in [next(each for each in wordings if each.pattern.fullmatch(example))]
        if first is not wording
    ]


def test_each_wording_has_examples_and_is_the_first_that_reads_them() -> None:
    assert (misread(ENGLISH), [wording.pattern for wording in ENGLISH if not wording.examples]) == ([], [])


def test_no_english_wording_reads_a_chinese_example() -> None:
    examples = [example for wording in CHINESE for example in wording.examples]

    assert [example for example in examples if any(each.pattern.fullmatch(example) for each in ENGLISH)] == []
