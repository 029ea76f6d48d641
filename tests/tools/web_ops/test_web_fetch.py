import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.web_site import Answer, WebSite, packed
from tools.base import HostPermission, ToolContext, ToolResult
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments
from tools.web_ops import http
from tools.web_ops.web_fetch import WebFetchTool

EXAMPLE_CALLS = {
    "web_fetch": ExampleCalls({"url": "http://127.0.0.1/"}, {"url": "http://127.0.0.1:9/"}, needs_context=True),
}

_PAGE = b"""<!doctype html><html><head><title> A  page </title><style>b{}</style></head><body>
<h1>Head</h1><script>alert(1)</script><p>Some <b>bold</b> text with a <a href="/x">link</a>.</p>
<ul><li>one</li><li>two</li></ul></body></html>"""


def _open(host: str) -> HostPermission:
    return HostPermission(may_follow=True, may_be_private=True)


async def _fetched(
    url: str, leave: Callable[[str], HostPermission] = _open, tool: WebFetchTool | None = None, **more: Any
) -> ToolResult:
    tool = tool or WebFetchTool()
    return await execute(
        tool, normalize_arguments(tool, {"url": url, **more}), ToolContext(Path("/w"), host_permission=leave)
    )


async def test_a_page_comes_as_markdown_without_what_nobody_sees() -> None:
    with WebSite({"/": Answer(_PAGE, "text/html; charset=utf-8")}) as site:
        result = await _fetched(site.url(), prompt="what is it about?")

    assert result.output == (
        f"{site.url()} (status 200, text/html)\nTitle: A page\nWanted: what is it about?\n\n"
        "# Head\n\nSome **bold** text with a [link](/x).\n\n- one\n- two"
    )
    assert result.metadata == {"url": site.url(), "status": 200, "bytes": len(_PAGE), "title": "A page"}
    assert site.asked == [("/", f"127.0.0.1:{site.port}")]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(b"plain <b>text</b>"), "plain <b>text</b>"),
        (Answer(b'{"a": 1}', "application/vnd.api+json"), '{"a": 1}'),
        (Answer("中文".encode("gb18030"), "text/plain; charset=gb18030"), "中文"),
        (Answer("é".encode("latin-1"), "text/plain; charset=nonsense"), "\N{REPLACEMENT CHARACTER}"),
        (Answer(b'<meta charset="gbk"><p>' + "中".encode("gbk"), "text/html"), "中"),
        (Answer(b"<html><p>untyped", ""), "untyped"),
        (Answer(b"<div>" * 5_000 + b"too deep for its layout", "text/html"), "too deep for its layout"),
        (packed(b"packed words"), "packed words"),
        (Answer(b""), "(no text)"),
    ],
)
async def test_text_comes_as_text_in_whatever_encoding(answer: Answer, text: str) -> None:
    with WebSite({"/": answer}) as site:
        result = await _fetched(site.url())

    assert result.error is None
    assert result.output.partition("\n\n")[2] == text


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Answer(b"\x89PNG\r\n", "image/png"), "is image/png, 6 bytes, not text"),
        (Answer(b"MZ\0\0", "text/plain"), "is text/plain, 4 bytes, not text"),
        (Answer(b"x", headers={"Content-Encoding": "br"}), "it is compressed as 'br', which was not requested"),
        (Answer(b"no gzip", headers={"Content-Encoding": "gzip"}), "could not be fetched"),
        (Answer(b"gone", status=404), "The server answered with status 404."),
        (Answer(status=302, headers={"Location": "/"}), "was redirected 10 times"),
        (Answer(status=302, headers={"Location": "file:/etc/passwd"}), "Its redirect is invalid"),
    ],
)
async def test_what_is_no_page_of_text_is_an_error_that_says_what_it_is(answer: Answer, complaint: str) -> None:
    with WebSite({"/": answer}) as site:
        result = await _fetched(site.url())

    assert result.error is not None
    assert complaint in result.error


@pytest.mark.parametrize("answer", [Answer(b"a" * 5_000_000), packed(b"a" * 50_000_000)], ids=["plain", "packed"])
async def test_a_page_is_cut_at_its_limit_and_says_so(answer: Answer) -> None:
    with WebSite({"/": answer}) as site:
        result = await _fetched(site.url())

    assert result.metadata["bytes"] == http.MAX_BYTES
    assert result.output.endswith(f"[the page is longer; only its first {http.MAX_BYTES} bytes were fetched]")


async def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_SECONDS", 0.2)
    with WebSite({"/": Answer(b"late", delay_s=10)}) as site:
        result = await _fetched(site.url())

    assert (result.error, result.metadata) == (
        f"{site.url()} did not answer in 0.2 seconds.",
        {"error_type": "timeout"},
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_this_machine_is_not_asked_unless_a_rule_names_it(host: str) -> None:
    with WebSite({"/": Answer(b"secret")}) as site:
        result = await _fetched(site.url(host=host), lambda _: HostPermission(may_follow=True))

    assert result.error is not None
    assert "which is not public; this needs a rule" in result.error
    assert (result.metadata, site.asked) == ({"error_type": "permission"}, [])


@pytest.mark.parametrize(
    ("target", "permission", "refusal"),
    [
        (
            "",
            HostPermission(),
            "It redirects to another host: {}. Call web_fetch with that address if it is the page",
        ),
        ("", HostPermission(is_denied=True, may_follow=True), "It redirects to {}, which a rule denies."),
        ("http://169.254.169.254/latest", HostPermission(may_follow=True), "169.254.169.254, which is not public"),
    ],
    ids=["unknown", "denied", "private"],
)
async def test_a_redirect_to_another_host_is_followed_only_if_the_rules_allow_it(
    target: str, permission: HostPermission, refusal: str
) -> None:
    def permission_of(host: str) -> HostPermission:
        return _open(host) if host.startswith("127.0.0.1") else permission

    with WebSite({}) as other:
        place = target or other.url("/x", "localhost")
        with WebSite({"/": Answer(status=301, headers={"Location": place})}) as site:
            result = await _fetched(site.url(), permission_of)

    assert refusal.format(place) in str(result.error)
    assert other.asked == []


async def test_a_redirection_within_the_host_and_to_one_that_may_be_followed_is_followed() -> None:
    with WebSite({"/x": Answer(b"there")}) as other:
        to_other = Answer(status=302, headers={"Location": other.url("/x", "localhost")})
        with WebSite({"/": Answer(status=302, headers={"Location": "/next"}), "/next": to_other}) as site:
            result = await _fetched(site.url())

    assert result.output == f"{other.url('/x', 'localhost')} (status 200, text/plain)\n\nthere"
    assert other.asked == [("/x", f"localhost:{other.port}")]


async def test_a_page_is_kept_for_a_while_but_neither_an_error_nor_what_came_from_another_host() -> None:
    with WebSite({"/x": Answer(b"there")}) as other:
        moved = Answer(status=302, headers={"Location": other.url("/x", "localhost")})
        with WebSite({"/": Answer(b"here"), "/moved": moved}) as site:
            tool = WebFetchTool()
            for path, _ in itertools.product(("/", "/gone", "/moved"), range(2)):
                await _fetched(site.url(path), tool=tool)

    assert [path for path, _ in site.asked] == ["/", "/gone", "/gone", "/moved", "/moved"]


async def test_a_proxy_of_the_environment_is_asked_and_private_hosts_stay_refused(
    monkeypatch: pytest.MonkeyPatch, isolated: list[str]
) -> None:
    with WebSite({"http://page.invalid/": Answer(b"by proxy")}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        result = await _fetched("http://page.invalid/", lambda _: HostPermission())
        refused = await _fetched("http://10.0.0.1/", lambda _: HostPermission())

    assert result.output.endswith("by proxy")
    assert refused.metadata == {"error_type": "permission"}
    assert proxy.asked == [("http://page.invalid/", "page.invalid")]
    assert isolated == ["page.invalid"]
    isolated.clear()


@pytest.mark.parametrize("url", ["file:/etc/passwd", "http://u:p@h/"])
def test_an_address_that_cannot_be_fetched_is_refused_before_anyone_is_asked(url: str) -> None:
    errors = [httpx.ReadTimeout(""), httpx.ReadError("reset by peer"), httpx.ReadError("")]

    with pytest.raises(InvalidArguments, match="url"):
        normalize_arguments(WebFetchTool(), {"url": url})
    assert WebFetchTool().suggest_rule({"url": "https://h:8443/secret?q=1"}) == "web_fetch(h:8443)"
    assert [*map(http.describe_error, errors)] == ["no data for 20 seconds", "reset by peer", "ReadError"]


@pytest.mark.parametrize("is_redirected", [False, True])
async def test_a_host_whose_address_a_rule_denies_is_not_contacted(*, is_redirected: bool) -> None:
    def permission(host: str) -> HostPermission:
        return HostPermission(is_closed=host == f"127.0.0.1:{denied.port}", may_be_private=True, may_follow=True)

    with (
        WebSite({}) as denied,
        WebSite({"/": Answer(status=302, headers={"Location": denied.url("/x", "localhost")})}) as site,
    ):
        result = await _fetched(site.url() if is_redirected else denied.url("/x", "localhost"), permission)

    assert result.error == "localhost has the address 127.0.0.1, which a rule denies. Nothing was sent."
    assert denied.asked == []
