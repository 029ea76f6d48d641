"""The web is searched by the service that the user set up, after somebody said yes to the very query."""

import json
from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.web_site import Answer, WebSite
from tests.scenarios.command import Command


def test_a_query_waits_for_a_yes_and_its_results_reach_the_model(tmp_path: Path) -> None:
    results = {"results": [{"title": "Uv", "url": "http://uv/", "content": "<b>fast</b>"}]}
    page = "/search?q=uv+lock&format=json"
    call = TC("c1", "web_search", {"query": "uv lock"})
    with WebSite({page: Answer(json.dumps(results).encode())}) as site, FakeOpenAI([call, TXT("read")]) as server:
        command = Command(tmp_path, server.base_url)
        command("config", "set", "web_search.url", site.url())
        command("config", "set", "web_search.provider", "searxng")
        first, asked = command.run_json("look", "--thread", "t1")
        before = list(site.asked)
        second, result = command.run_json("--resume", "t1", "--approve", "all")

    offered = {tool["function"]["name"] for tool in server.bodies[0]["tools"]}
    (waiting,) = asked["pending_approvals"]
    (told,) = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"]
    assert (first, waiting["tool_name"], waiting["risk"], before) == (3, "web_search", "medium", [])
    assert (second, result["answer"], told) == (0, "read", "1. Uv\n   http://uv/\n   fast")
    assert "web_search" in offered
