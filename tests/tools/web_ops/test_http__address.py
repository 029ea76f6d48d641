import pytest

from tools.web_ops.http import BadAddress, parse_address


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("https://Docs.Python.org/3/", "docs.python.org"),
        (" https://docs.python.org:443/a#part ", "docs.python.org"),
        ("http://h:8080/", "h:8080"),
        ("https://h:80/", "h:80"),
        ("http://h./", "h"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("https://bücher.de/", "xn--bcher-kva.de"),
        ("http://good.com#@evil.com/", "good.com"),
    ],
)
def test_a_host_is_named_as_rules_name_it(text: str, target: str) -> None:
    assert parse_address(text).target == target


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("file:/etc/passwd", "only those are fetched"),
        ("ftp://h/", "only those are fetched"),
        ("gopher://h/", "only those are fetched"),
        ("docs.python.org/3", "only those are fetched"),
        ("", "only those are fetched"),
        ("http:///x", "names no host"),
        ("http://./", "names no host"),
        ("http://h:x/", "is no address"),
        ("http://h:99999999/", "the highest is 65535"),
        ("http://h\\@evil/", "carries a user name or password"),
        ("http://evil.com\\.good.com/", "names no host"),
        ("http://good.com%2eevil.com/", "names no host"),
        ("http://user:secret@h/", "carries a user name or password"),
        ("http://h/\n\x00", "is no address"),
        (f"http://h/{'a' * 9000}", "up to 8000 are fetched"),
    ],
)
def test_what_cannot_be_fetched_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        parse_address(text)


def test_a_password_is_not_repeated_in_the_complaint() -> None:
    with pytest.raises(BadAddress) as complaint:
        parse_address("http://user:secret@h/")

    assert "secret" not in str(complaint.value)


@pytest.mark.parametrize("location", ["file:/etc/passwd", "http://u:p@h/", "http://h:x/"])
def test_a_redirection_leads_only_to_what_could_be_asked_for(location: str) -> None:
    with pytest.raises(BadAddress):
        parse_address("http://h/a").followed(location)


def test_a_redirection_is_read_relative_to_where_it_was_met() -> None:
    assert str(parse_address("http://h/a/b").followed("../c").url) == "http://h/c"
