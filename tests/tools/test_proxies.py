"""One answer to which proxy an address is requested through, for everything that makes requests."""

import importlib.util

import pytest

from tools.proxies import ProxyUnusable, proxy_for

PROXY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_other_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTP_PROXY", "all_proxy", "http_proxy"])
@pytest.mark.parametrize("proxy", [PROXY, "socks5://127.0.0.1:9", "socks4://127.0.0.1:9", "no address at all"])
@pytest.mark.parametrize(
    ("exceptions", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/v1"),
        ("127.0.0.1,localhost", "http://localhost:8000/v1"),
        ("localhost 127.0.0.1", "http://127.0.0.1:8000/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1", "http://127.0.0.1:8000/v1"),
        ("127.0.0.0/8", "http://127.1.2.3/v1"),
        ("*", "http://anything.example/v1"),
        ("example.com", "http://api.example.com/v1"),
        (".example.com", "http://API.example.com./v1"),
        ("*.example.com", "http://api.example.com:80/v1"),
        ("example.com:80", "http://example.com/v1"),
        ("[::1]", "http://[::1]:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("::1", "http://[::1]:8000/v1"),
        ("fd00::/8", "http://[fd12::1]/v1"),
    ],
)
def test_a_proxy_that_does_not_apply_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, name: str, proxy: str, exceptions: str, url: str
) -> None:
    monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert proxy_for(url) is None


@pytest.mark.parametrize(
    ("exceptions", "url"),
    [
        ("", "http://127.0.0.1/v1"),
        ("127.0.0.1:8000", "http://127.0.0.1:8001/v1"),
        ("10.0.0.0/8", "http://127.0.0.1/v1"),
        ("example.com", "http://badexample.com/v1"),
        ("example.com:443", "http://example.com/v1"),
        (",. , ", "http://example.com/v1"),
        ("256.0.0.0/8", "http://example.com/v1"),
    ],
)
def test_a_proxy_applies_to_everything_else(monkeypatch: pytest.MonkeyPatch, exceptions: str, url: str) -> None:
    monkeypatch.setenv("ALL_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert proxy_for(url) == PROXY


def test_the_proxy_of_the_scheme_comes_first_and_needs_no_scheme_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://all:1")
    monkeypatch.setenv("HTTPS_PROXY", "secure:2")
    assert [proxy_for("http://x/"), proxy_for("https://x/")] == ["http://all:1", "http://secure:2"]


@pytest.mark.parametrize("proxy", ["socks4://h:1", "ftp://h:1", "http://", "socks5://h:1"])
def test_a_proxy_that_cannot_be_used_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setattr("tools.proxies.find_spec", lambda _: None)
    with pytest.raises(ProxyUnusable, match="NO_PROXY") as caught:
        proxy_for("http://host/")
    assert ("graph-agent[socks]" in str(caught.value)) == proxy.startswith("socks5")


def test_socks_needs_the_package_that_the_extra_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("socksio") is not None
    monkeypatch.setenv("ALL_PROXY", "socks5h://h:1")
    assert proxy_for("https://host/") == "socks5h://h:1"
