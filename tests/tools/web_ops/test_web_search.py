import json
from pathlib import Path

import pytest

from tests.fakes.web_site import Answer, WebSite
from tools import create_default_tools
from tools.base import ToolContext, ToolKind, ToolResult, ToolRiskLevel
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments
from tools.web_ops.search_services import SearchProvider
from tools.web_ops.web_search import WebSearchTool

PAGE = "/search?q=a&format=json"


async def _found(*titles: str) -> ToolResult:
    entries = [{"title": title, "url": f"http://x/{title}", "content": f"of {title}"} for title in titles]
    with WebSite({PAGE: Answer(json.dumps({"results": entries}).encode())}) as site:
        tool = WebSearchTool(provider=SearchProvider("searxng", site.url("")))
        return await execute(
            tool, normalize_arguments(tool, {"query": " a ", "limit": "2"}), ToolContext(Path("/w"))
        )


async def test_results_come_as_title_address_and_words() -> None:
    assert await _found("one", "two", "three") == ToolResult(
        "1. one\n   http://x/one\n   of one\n\n2. two\n   http://x/two\n   of two",
        "2 results",
        metadata={
            "query": "a",
            "results": [{"title": "one", "url": "http://x/one"}, {"title": "two", "url": "http://x/two"}],
        },
    )


async def test_nothing_found_is_no_failure() -> None:
    nothing = await _found()

    assert (nothing.output, nothing.error) == ("No results for 'a'.", None)


async def test_a_failure_is_a_result() -> None:
    tool = WebSearchTool(provider=SearchProvider("searxng", "http://127.0.0.1:9"))

    failed = await execute(tool, {"query": "a"}, ToolContext(Path("/w")))

    assert failed.error is not None
    assert "is SearXNG running?" in failed.error


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
