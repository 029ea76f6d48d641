from graph_agent.cli.views.table import labelled, short_ids, table


def test_cells_are_made_safe_and_columns_stay_aligned() -> None:
    lines = list(table(("A", "B"), [("x\x1b", "1"), ("日本", "2")]))

    assert lines == ["A      B", "x\\x1b  1", "日本   2"]


def test_labels_without_a_value_are_left_out() -> None:
    assert list(labelled({"long label": "", "a": "1", "bcd": "two\nlines"})) == ["a    1", "bcd  two\\nlines"]


def test_only_a_long_id_is_shortened_and_only_while_it_stays_the_only_one() -> None:
    ids = ["fix-the-login", "0123456789abcdef-00000001", "0123456789abcdef-00000002", "fedcba9876543210-00000002"]

    assert [short_ids(ids)(identifier) for identifier in ids] == [
        "fix-the-login",
        "00000001",
        "0123456789abcdef-00000002",
        "fedcba9876543210-00000002",
    ]
