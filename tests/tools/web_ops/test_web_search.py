import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.web_site import Answer, WebSite, packed
from tools import create_default_tools
from tools.base import BytesFetched, Progress, ToolContext, ToolKind, ToolResult, ToolRiskLevel
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments
from tools.web_ops import web_search
from tools.web_ops.http import FetchError
from tools.web_ops.web_search import (
    SearchHit,
    SearchProvider,
    UnexpectedAnswer,
    WebSearchTool,
    build_request,
    parse_hits,
    search_web,
)

PAGE = "/search?q=a&format=json"


async def _found(*titles: str) -> ToolResult:
    entries = [{"title": title, "url": f"http://x/{title}", "content": f"of {title}"} for title in titles]
    with WebSite({PAGE: Answer(json.dumps({"results": entries}).encode())}) as site:
        tool = WebSearchTool(provider=SearchProvider("searxng", site.url("")))
        return await execute(
            tool, normalize_arguments(tool, {"query": " a ", "limit": "2"}), ToolContext(Path("/w"))
        )


async def test_results_come_as_title_address_and_words_and_a_failure_as_a_result() -> None:
    nothing = await _found()
    tool = WebSearchTool(provider=SearchProvider("searxng", "http://127.0.0.1:9"))
    failed = await execute(tool, {"query": "a"}, ToolContext(Path("/w")))

    assert await _found("one", "two", "three") == ToolResult(
        "1. one\n   http://x/one\n   of one\n\n2. two\n   http://x/two\n   of two",
        "2 results",
        metadata={
            "query": "a",
            "results": [{"title": "one", "url": "http://x/one"}, {"title": "two", "url": "http://x/two"}],
        },
    )
    assert (nothing.output, nothing.error) == ("No results for 'a'.", None)
    assert "is SearXNG running? The setting web_search.url says where." in str(failed.error)


@pytest.mark.parametrize("arguments", [{}, {"query": " "}, {"query": "a", "limit": 0}, {"query": "q" * 401}])
def test_a_query_says_something_and_not_too_much(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArguments):
        normalize_arguments(WebSearchTool(provider=SearchProvider("searxng", "http://x")), arguments)


def test_the_tool_is_there_only_where_somebody_answers_and_shows_where_a_query_goes(tmp_path: Path) -> None:
    provider = SearchProvider("brave", api_key="k")
    without = [tool.name for tool in create_default_tools(workspace=tmp_path)]
    tools = {tool.name: tool for tool in create_default_tools(workspace=tmp_path, search=provider)}

    tool = tools.pop("web_search")

    assert (without, list(tools)) == (list(tools), without)
    assert (tool.kind, tool.risk_level) == (ToolKind.READONLY, ToolRiskLevel.MEDIUM)
    assert tool.display_call({"query": "my words"}) == "search https://api.search.brave.com: my words"


JSON = {"Accept": "application/json"}
SEARXNG = SearchProvider("searxng", "http://localhost:8080")
BRAVE = SearchProvider("brave", api_key="k")
TAVILY = SearchProvider("tavily", api_key="k")


@pytest.mark.parametrize(
    ("provider", "method", "url", "more"),
    [
        (SEARXNG, "GET", "http://localhost:8080/search?q=a+%26+b&format=json", {"headers": JSON}),
        (
            BRAVE,
            "GET",
            "https://api.search.brave.com/res/v1/web/search?q=a+%26+b&count=3",
            {"headers": {**JSON, "X-Subscription-Token": "k"}},
        ),
        (
            TAVILY,
            "POST",
            "https://api.tavily.com/search",
            {"headers": {**JSON, "Authorization": "Bearer k"}, "json": {"query": "a & b", "max_results": 3}},
        ),
    ],
    ids=["searxng", "brave", "tavily"],
)
def test_each_service_gets_its_own_request(
    provider: SearchProvider, method: str, url: str, more: dict[str, Any]
) -> None:
    assert build_request(provider, "a & b", 3) == {"method": method, "url": url, **more}


@pytest.mark.parametrize(
    ("provider", "place", "snippet"),
    [(SEARXNG, "", "content"), (BRAVE, "web", "description"), (TAVILY, "", "content")],
    ids=["searxng", "brave", "tavily"],
)
def test_each_answer_is_read(provider: SearchProvider, place: str, snippet: str) -> None:
    results = {"results": [{"title": "T", "url": "http://x/", snippet: "<strong>words</strong>", "score": 1}]}

    assert parse_hits(provider, {place: results} if place else results, 5) == [SearchHit("T", "http://x/", "words")]
    # A service that found nothing on the web may leave that part out.
    assert parse_hits(BRAVE, {"type": "search"}, 5) == []


def test_results_are_cleaned_counted_and_told_once() -> None:
    entries: list[Any] = [
        {"title": "a\x1b]0;b\x07\n c &amp; <b>d</b> 1 < 2", "url": " http://x/a b ", "content": "w" * 500},
        {"title": "again", "url": "http://x/a b"},
        {"title": "", "url": "https://y/", "content": None},
        {"title": "no page", "url": "javascript:alert(1)"},
        {"title": "hidden", "url": "http://z/\u202e"},
        {"title": "none"},
        "text",
        {"title": "beyond", "url": "http://beyond/"},
    ]

    assert parse_hits(SEARXNG, {"results": entries}, 2) == [
        SearchHit("a ]0;b c & d 1 < 2", "http://x/a%20b", f"{'w' * 399}…"),
        SearchHit("https://y/", "https://y/", ""),
    ]


@pytest.mark.parametrize("answer", [[], {}, {"results": 3}, "text", None])
def test_an_answer_without_a_list_is_odd(answer: Any) -> None:
    with pytest.raises(UnexpectedAnswer):
        parse_hits(SEARXNG, answer, 5)


RESULTS = json.dumps({"results": [{"title": "T", "url": "http://x/", "content": "words"}]}).encode()


async def test_a_server_of_this_very_machine_may_be_asked_as_the_user_set_it() -> None:
    with WebSite({PAGE: packed(RESULTS)}) as site:
        reported: list[Progress] = []
        found = await search_web(SearchProvider("searxng", site.url("")), "a", 5, reported.append)

    assert [one.done for one in reported if isinstance(one, BytesFetched)] == [len(RESULTS)]
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


async def test_a_rejected_key_a_password_and_silence_are_reported_without_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_search, "_SECONDS", 2)
    silent = WebSite({PAGE: Answer(RESULTS, delay_s=20)}, post={"/search": Answer(b'{"detail": "no"}', status=401)})
    with silent as site:
        place = site.url("")
        providers = {
            "timeout": SearchProvider("searxng", place),
            "password": SearchProvider("searxng", "http://u:p@x"),
            "key": SearchProvider("tavily", place, "sk-key"),
        }
        errors = {}
        for name, provider in providers.items():
            with pytest.raises(FetchError) as caught:
                await search_web(provider, "a", 5)
            errors[name] = str(caught.value)

    assert errors["timeout"] == f"{place} did not answer in 2 seconds."
    assert "could not be searched: it contains a user name or password" in errors["password"]
    assert errors["key"] == (
        f"{place} answered 401: it rejects the key. The user sets it: web_search.api_key, or TAVILY_API_KEY."
    )
