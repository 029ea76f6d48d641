"""A page is fetched after somebody allowed its host; a private one only where a rule names it, whoever says yes."""

from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.web_site import Answer, WebSite
from tests.scenarios.command import Command


def _told(server: FakeOpenAI) -> list[str]:
    return [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"]


def test_a_page_of_this_machine_is_fetched_only_where_a_rule_names_it_even_when_a_person_approves(
    tmp_path: Path,
) -> None:
    with WebSite({"/": Answer(b"<h1>Docs</h1>", "text/html")}) as site:
        asking = TC("c1", "web_fetch", {"url": site.url()})
        with FakeOpenAI(
            [asking, TXT("no page"), TC("c2", "web_fetch", {"url": site.url()}), TXT("read")]
        ) as server:
            command = Command(tmp_path, server.base_url)
            first, asked = command.run_json("look", "--thread", "t1")
            command.run_json("--resume", "t1", "--approve", "all")
            refused, asked_of_site = _told(server)[-1], list(site.asked)
            command("config", "set", "policy.allow", f'["web_fetch(127.0.0.1:{site.port})"]')
            second, result = command.run_json("again", "--resume", "t1")

    assert (first, second, result["answer"]) == (3, 0, "read")
    assert (asked["pending_approvals"][0]["tool_name"], asked_of_site) == ("web_fetch", [])
    assert f"allow 'web_fetch(127.0.0.1:{site.port})' in [policy]" in refused
    assert _told(server)[-1] == f"{site.url()} (status 200, text/html)\n\n# Docs"
