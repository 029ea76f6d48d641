from graph_agent.cli.views.format import format_count, format_omitted


def test_only_one_is_not_many() -> None:
    assert [format_count(count, "call") for count in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
    assert [format_omitted(count, "more line") for count in (1, 2)] == [
        "… 1 more line; --full shows it",
        "… 2 more lines; --full shows them",
    ]
