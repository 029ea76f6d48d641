from typing import Any

import pytest

from tools.web_ops.search_services import (
    SearchHit,
    SearchProvider,
    SearchRequest,
    UnexpectedAnswer,
    build_request,
    parse_hits,
)

SEARXNG = SearchProvider("searxng", "http://localhost:8080")
BRAVE = SearchProvider("brave", api_key="k")
TAVILY = SearchProvider("tavily", api_key="k")


@pytest.mark.parametrize(
    ("provider", "asked"),
    [
        (SEARXNG, SearchRequest("GET", "http://localhost:8080/search?q=a+%26+b&format=json")),
        (
            BRAVE,
            SearchRequest(
                "GET",
                "https://api.search.brave.com/res/v1/web/search?q=a+%26+b&count=3",
                {"X-Subscription-Token": "k"},
            ),
        ),
        (
            TAVILY,
            SearchRequest(
                "POST",
                "https://api.tavily.com/search",
                {"Authorization": "Bearer k"},
                {"query": "a & b", "max_results": 3},
            ),
        ),
    ],
)
def test_each_service_is_asked_in_its_own_way(provider: SearchProvider, asked: SearchRequest) -> None:
    assert build_request(provider, "a & b", 3) == asked


@pytest.mark.parametrize(
    ("provider", "answer"),
    [
        (SEARXNG, {"results": [{"title": "T", "url": "http://x/", "content": "words"}]}),
        (
            BRAVE,
            {"web": {"results": [{"title": "T", "url": "http://x/", "description": "<strong>words</strong>"}]}},
        ),
        (TAVILY, {"results": [{"title": "T", "url": "http://x/", "content": "words", "score": 1}]}),
    ],
)
def test_each_answer_is_read(provider: SearchProvider, answer: Any) -> None:
    assert parse_hits(provider, answer, 5) == [SearchHit("T", "http://x/", "words")]


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


def test_a_service_that_found_nothing_on_the_web_says_so_by_leaving_it_out() -> None:
    assert parse_hits(BRAVE, {"type": "search"}, 5) == []


@pytest.mark.parametrize("answer", [[], {}, {"results": 3}, "text", None])
def test_an_answer_without_a_list_is_odd(answer: Any) -> None:
    with pytest.raises(UnexpectedAnswer):
        parse_hits(SEARXNG, answer, 5)
