import pytest

from graph_agent.config.user_commands import split_front_matter


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Just text.\n", ({}, "Just text.")),
        (
            "---\nname: a\ndescription: 'Does: it'\n---\n\nBody\n",
            ({"name": "a", "description": "Does: it"}, "Body"),
        ),
        ("\ufeff---\r\nDescription: x\r\n---\r\nBody\r\n", ({"description": "x"}, "Body")),
        (
            "---\ndescription: >-\n  When tests\n  fail.\n\n  Always.\nother: 1\n---\nB",
            ({"description": "When tests fail. Always.", "other": "1"}, "B"),
        ),
        ("---\ndescription: |\n  One\n---\n", ({"description": "One"}, "")),
        ("---\ndescription: begins\n  goes on\n---\n", ({"description": "begins goes on"}, "")),
        ("---\ntools:\n  - a\n  - b\n# note\nnonsense\n---\nB", ({"tools": "- a - b"}, "B")),
        ("---\nnever: closed\n", ({}, "---\nnever: closed")),
        ("---\n---\nB", ({}, "B")),
    ],
)
def test_a_head_is_told_apart_from_what_stands_below(text: str, found: tuple[dict[str, str], str]) -> None:
    assert split_front_matter(text) == found
