import pytest

from policy.rules import matches_host


@pytest.mark.parametrize(
    ("pattern", "target", "covers"),
    [
        ("docs.python.org", "docs.python.org", True),
        ("Docs.Python.org", "docs.python.ORG.", True),
        ("docs.python.org", "docs.python.org.evil", False),
        ("docs.python.org", "evil-docs.python.org", False),
        ("docs.python.org", "docs.python.org:8443", False),
        ("docs.python.org:8443", "docs.python.org:8443", True),
        ("docs.python.org:8443", "docs.python.org", False),
        ("docs.python.org:*", "docs.python.org:8443", True),
        ("*.python.org", "a.docs.python.org", True),
        ("*.python.org", "python.org", False),
        ("*.python.org", "evilpython.org", False),
        ("*", "h", True),
        ("[::1]:80", "[::1]:80", True),
        ("::1", "[::1]", True),
    ],
)
def test_hosts_are_compared_label_by_label(pattern: str, target: str, rule_covers: bool) -> None:
    assert matches_host(pattern, target, is_strict=False) is rule_covers


def test_a_rule_that_forbids_a_host_forbids_all_its_ports() -> None:
    assert matches_host("h", "h:8443", is_strict=True)
