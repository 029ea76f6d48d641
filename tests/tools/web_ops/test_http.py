import pytest

from tools.web_ops.http import BadAddress, HostNotFound, is_public, parse_address, resolve


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
        ("http://h:x/", "is not an address"),
        ("http://h:99999999/", "the highest is 65535"),
        ("http://h\\@evil/", "contains a user name or password"),
        ("http://evil.com\\.good.com/", "names no host"),
        ("http://good.com%2eevil.com/", "names no host"),
        ("http://user:secret@h/", "contains a user name or password"),
        ("http://h/\n\x00", "is not an address"),
        (f"http://h/{'a' * 9000}", "at most 8000 are allowed"),
    ],
)
def test_what_cannot_be_fetched_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why) as refused:
        parse_address(text)
    assert "secret" not in str(refused.value)


def test_a_redirect_is_relative_to_its_page_and_checked_like_any_address() -> None:
    assert str(parse_address("http://h/a/b").redirect("../c").url) == "http://h/c"
    for location in ("file:/etc/passwd", "http://u:p@h/", "http://h:x/"):
        with pytest.raises(BadAddress):
            parse_address("http://h/a").redirect(location)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:0:0:0:0:80ff:fffe", "no address",
        "0.0.0.0",  # noqa: S104 - nothing listens
        "fec0::1", "feff::1", "3fff::1",
        "2001:db8:1:2:0:5efe:c0a8:1", "2606:4700::200:5efe:5db8:d70e", "168.63.129.16",
        "::ffff:168.63.129.16",
    ],
)  # fmt: skip
def test_an_address_that_is_private_or_wraps_one_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("spelling", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
async def test_every_spelling_of_this_machine_is_seen_through(spelling: str) -> None:
    assert not any(map(is_public, await resolve(spelling, 80)))


async def test_a_name_that_leads_nowhere_is_said_to(isolated: list[str]) -> None:
    with pytest.raises(HostNotFound, match="could not be resolved"):
        await resolve("no-such-host.invalid", 80)

    assert isolated == ["no-such-host.invalid"]
    isolated.clear()
