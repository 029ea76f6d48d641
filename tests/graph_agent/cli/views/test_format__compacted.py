from graph_agent.cli.views.format import format_compaction
from graph_agent.events import Compacted


def test_the_line_says_how_far_and_how() -> None:
    assert format_compaction(Compacted(84_000, 21_000, "summary")) == (
        "compacted: 84,000 -> 21,000 tokens (summed up by the model)"
    )
