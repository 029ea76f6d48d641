from graph_agent.model.offline.chinese import CHINESE
from tests.graph_agent.model.offline.test_english import misread


def test_each_wording_has_examples_and_is_the_first_that_reads_them() -> None:
    assert (misread(CHINESE), [wording.pattern for wording in CHINESE if not wording.examples]) == ([], [])
