import pytest

from tools.file_ops.replace import reindent


@pytest.mark.parametrize(
    ("old", "found", "new", "expected"),
    [
        (["a", "  b"], ["    a", "      b"], ["a", "  c", "", "d"], ["    a", "      c", "", "    d"]),
        (["    a"], ["  a"], ["    b", "      c"], ["  b", "    c"]),
        (["    a"], ["  a"], ["b"], None),
        (["if x:", "    y"], ["if x:", "\ty"], ["if x:", "    y", "        z"], ["if x:", "\ty", "\t\tz"]),
        (["    a", "        b"], ["\ta", "\t\tb"], ["    a", "      c"], None),
        (["a"], ["\ta"], ["a", "    b"], None),
        (["a", "  b", " c"], ["a", "\tb", "    c"], ["b"], ["b"]),
        (["a", "  b", "  c"], ["a", "\tb", "    c"], ["  b"], None),
        (["", ""], ["", ""], ["  a"], ["  a"]),
    ],
)
def test_indentation_is_carried_over_by_one_rule_or_not_at_all(
    old: list[str], found: list[str], new: list[str], expected: list[str] | None
) -> None:
    assert reindent(old, found, new) == expected
