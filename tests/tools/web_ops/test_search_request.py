import json

import pytest

from tests.fakes.web_site import Answer, WebSite, packed
from tools.result import ToolErrorType
from tools.web_ops import search_request
from tools.web_ops.http import FetchError
from tools.web_ops.search_request import search_web
from tools.web_ops.search_services import SearchHit, SearchProvider

PAGE = "/search?q=a&format=json"
RESULTS = json.dumps({"results": [{"title": "T", "url": "http://x/", "content": "words"}]}).encode()


async def test_a_server_of_this_very_machine_may_be_asked_as_the_user_set_it() -> None:
    with WebSite({PAGE: packed(RESULTS)}) as site:
        found = await search_web(SearchProvider("searxng", site.url("")), "a", 5)

    assert (found, site.asked) == ([SearchHit("T", "http://x/", "words")], [(PAGE, f"127.0.0.1:{site.port}")])


async def test_a_service_gets_its_key_in_a_header_and_the_query_as_it_wants_it() -> None:
    with WebSite({}, post={"/search": Answer(RESULTS, "application/json")}) as site:
        found = await search_web(SearchProvider("tavily", site.url(""), "sk-key"), "a", 5)

    assert (len(found), site.headers[0]["Authorization"]) == (1, "Bearer sk-key")
    assert json.loads(site.posted[0]) == {"query": "a", "max_results": 5}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=429), "answered 429: too many requests"),
        (Answer(b"<html>Forbidden", "text/html", 403), "answered 403; SearXNG returns no JSON: add `json` under"),
        (Answer(b"<html>", "text/html"), "answered without JSON; SearXNG returns no JSON: add `json` under"),
        (Answer(b"[]"), "is not searxng: its JSON is not an object"),
        (Answer(b"[" * 100_000), "answered without JSON"),
        (Answer(b'{"error": {"message": "too \\u001b long"}}', status=400), "answered 400: too long."),
        (Answer(b"<html>oops", status=502), "answered 502."),
        (Answer(status=302, headers={"Location": "http://y/"}), "answered 302."),
    ],
)
async def test_what_goes_wrong_is_told_with_what_to_do(answer: Answer, said: str) -> None:
    with WebSite({PAGE: answer}) as site, pytest.raises(FetchError) as caught:
        await search_web(SearchProvider("searxng", site.url("")), "a", 5)

    assert said in str(caught.value)


async def test_a_key_that_is_not_taken_is_told_with_where_it_is_set_and_never_shown() -> None:
    site = WebSite({}, post={"/search": Answer(b'{"detail": "no"}', status=401)})
    with site, pytest.raises(FetchError) as caught:
        await search_web(SearchProvider("tavily", site.url(""), "sk-key"), "a", 5)

    assert str(caught.value) == (
        f"{site.url('')} answered 401: it rejects the key. The user sets it: web_search.api_key, or TAVILY_API_KEY."
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9", "cannot be reached: is SearXNG running? The setting web_search.url says where."),
        ("http://u:p@x", "could not be searched: it contains a user name or password"),
    ],
)
async def test_a_server_that_is_not_there_is_told_with_the_setting(url: str, said: str) -> None:
    with pytest.raises(FetchError) as caught:
        await search_web(SearchProvider("searxng", url), "a", 5)

    assert said in str(caught.value)


async def test_a_server_that_keeps_silent_is_left_alone_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_request, "_SECONDS", 0.2)
    with WebSite({PAGE: Answer(RESULTS, delay_s=20)}) as site, pytest.raises(FetchError) as caught:
        await search_web(SearchProvider("searxng", site.url("")), "a", 5)

    assert (caught.value.kind, "did not answer in 0.2 seconds" in str(caught.value)) == (
        ToolErrorType.TIMEOUT,
        True,
    )
