from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.thread_start import (
    REASONS_AGAINST,
    EarlyFacts,
    OpenRequest,
    hold_thread,
    prepare_first_request,
    reason_against,
)
from graph_agent.app.toolset import default_registry
from graph_agent.config.mcp_servers import validate_server
from graph_agent.config.settings import Settings
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.storage import thread_lock
from graph_agent.storage.sqlite.threads import SqliteInbox, open_store
from tools.agent_ops.completion import AttemptCompletionTool

ENDPOINT = {"base_url": "http://localhost:1/v1", "name": "m"}
HOOK = ({"command": "true"},)
SERVER = {"command": "server"}


def facts(folder: Path, request: Mapping[str, Any] | None = None, **settings: Any) -> EarlyFacts:
    given = {"model": ENDPOINT, "database": folder / "agent.db", **settings}
    asked = OpenRequest(
        workspace=folder,
        thread_id=None,
        names_model=False,
        model_left={},
        names_mode=False,
        from_checkpoint=None,
        may_choose_model=False,
        awaits_servers=True,
        add_dirs=(),
        attached=(),
        read_buffer=None,
        agent="",
        prompt="add a test",
        when_held=None,
        deletes_empty=False,
        sends_prompt=True,
        servers={},
    )
    chosen = Settings.model_validate(given)
    return EarlyFacts(replace(asked, **(request or {})), chosen, default_registry(folder, chosen))


CASES: Mapping[str, tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]] = {
    "early_request is off": (({}, {"early_request": "off"}),),
    "something else may come before the message": (({"sends_prompt": False}, {}),),
    "no endpoint answers": (({}, {"model": {"name": "m"}}), ({}, {"model": {**ENDPOINT, "factory": "a.b:make"}})),
    "no model is named": (({}, {"model": {"base_url": "http://localhost:1/v1"}}),),
    "a model is named for the thread": (({"model_left": {"thread": "t", "name": "m"}}, {}),),
    "an agent is named": (({"agent": "reviewer"}, {}),),
    "files are attached": (({"attached": ("a.png",)}, {}),),
    "a file may be mentioned": (({"prompt": "read @a.py"}, {}),),
    "it may be a command": (({"prompt": " /review"}, {}),),
    "a hook reads the message": (({}, {"hooks": {"user_prompt": HOOK}}),),
    "a hook adds to the message": (({}, {"hooks": {"session_start": HOOK}}),),
    "a budget may forbid the request": tuple(
        ({}, {name: 1}) for name in ("max_tokens", "max_cost", "max_thread_tokens", "max_thread_cost")
    ),
    "an MCP server may add tools": (
        ({}, {"mcp_servers": {"s": SERVER}}),
        ({"servers": {"s": validate_server("s", SERVER)}}, {}),
    ),
    "a setting replaces a header of the client": (
        ({}, {"model": {**ENDPOINT, "headers": {"authorization": "Basic x"}}}),
        ({}, {"model": {**ENDPOINT, "headers": {"User-Agent": "x"}}}),
    ),
    "the address holds a secret": (({}, {"model": {**ENDPOINT, "base_url": "http://me:secret@localhost:1/v1"}}),),
}


@pytest.mark.parametrize(
    ("reason", "request_fields", "settings"),
    [(reason, *case) for reason, cases in CASES.items() for case in cases],
)
def test_no_request_leaves_early_where_something_may_change_or_forbid_it(
    tmp_path: Path, reason: str, request_fields: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    assert reason_against(facts(tmp_path, request_fields, **settings)) == reason


def test_nothing_is_against_a_plain_request_with_settings_that_change_it_in_the_same_way(tmp_path: Path) -> None:
    plain = facts(tmp_path)
    rich = facts(
        tmp_path,
        {"add_dirs": (str(tmp_path),), "prompt": "用中文 😀"},
        model={**ENDPOINT, "headers": {"X-Team": "a"}, "effort": "high", "extra_body": {"seed": 1}},
        hooks={"before_call": HOOK, "turn_end": HOOK},
        mcp_servers={"s": {**SERVER, "enabled": False}},
        policy={"deny": ("bash(rm*)",)},
        mode="plan",
    )

    assert (reason_against(plain), reason_against(rich)) == ("", "")


@pytest.mark.parametrize(
    ("reason", "variable", "value"),
    [
        ("a proxy is used", "HTTP_PROXY", "http://proxy:3128"),
        ("a proxy is used", "ALL_PROXY", "socks4://proxy:1"),
        *(
            ("a variable adds headers", name, "x")
            for name in ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS")
        ),
    ],
)
def test_no_request_leaves_early_where_the_environment_changes_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, variable: str, value: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv(variable, value)

    assert reason_against(facts(tmp_path, model={**ENDPOINT, "base_url": "http://example.org/v1"})) == reason


def test_no_request_leaves_early_where_the_endpoint_or_a_tool_needs_more(tmp_path: Path) -> None:
    plain = facts(tmp_path)
    plugin = facts(tmp_path)
    plugin.registry.unregister(AttemptCompletionTool.name)
    plugin.registry.register(AttemptCompletionTool(workspace=tmp_path), origin="plugin")
    small = facts(tmp_path, model={**ENDPOINT, "context_window": 8_000})

    found = [
        reason_against(replace(plain, capabilities=Capabilities(streaming=False))),
        reason_against(replace(plain, capabilities=Capabilities(function_calling=False))),
        reason_against(replace(plain, tokens=12_001)),
        reason_against(replace(small, tokens=4_001)),
        reason_against(replace(small, tokens=4_000)),
        reason_against(plugin),
    ]

    long = "the request is long"
    assert found == ["replies are not streamed", "tools are sent as text", long, long, "", "a tool is not built in"]


async def test_a_request_that_is_prepared_leaves_with_a_message_that_cannot_change_it_and_is_recorded(
    tmp_path: Path,
) -> None:
    store = await open_store(tmp_path / "agent.db")
    row, inbox = (
        await store.threads.create("t1", str(tmp_path), "", "default"),
        SqliteInbox(store.database, store.clock),
    )
    typed = {"prompt": ""}
    refused = await prepare_first_request(facts(tmp_path, typed, early_request="off"), row, store)
    first = await prepare_first_request(facts(tmp_path, typed), row, store)
    assert first is not None
    leaves = [first.encode(text) is not None for text in ("hello", "see @a.py", " /review", "long " * 20_000)]
    for text in ("see @a.py", "hello"):
        await first.queue_and_send(text)
    unused, waiting = await inbox.unused_requests("t1"), await inbox.waiting("t1")
    await first.sender.close()  # Nobody listens at the address, so it never left.
    cleared = await inbox.unused_requests("t1")
    await store.database.close()

    assert (refused, leaves) == (None, [True, False, False, False])
    assert ([text for _, text in waiting], len(unused), cleared) == (["hello", "see @a.py"], 1, [])


async def test_a_message_for_a_thread_that_is_deleted_while_it_is_opened_is_kept_in_it(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "agent.db")
    row = await store.threads.create("t1", str(tmp_path), "", "plan")
    other, lock = thread_lock(store.database, store.clock), thread_lock(store.database, store.clock)
    await other.acquire("t1", "another process")
    assert await store.threads.delete_if_empty("t1", other)
    await other.release()

    async with AsyncExitStack() as opened:
        await hold_thread(facts(tmp_path).request, row, store, lock, opened)
    kept, waiting = await store.threads.get("t1"), await SqliteInbox(store.database, store.clock).waiting("t1")
    await store.database.close()

    assert kept is not None
    assert (kept.mode, [text for _, text in waiting]) == ("plan", ["add a test"])


def test_each_reason_is_tested() -> None:
    elsewhere = {"a proxy is used", "a variable adds headers", "replies are not streamed"}
    elsewhere |= {"tools are sent as text", "the request is long", "a tool is not built in"}

    assert {*CASES} | elsewhere == {*REASONS_AGAINST}
