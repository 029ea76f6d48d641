import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.config.settings import McpServer
from graph_agent.mcp.server import McpEnvironment, ServerFailed, ServerState
from graph_agent.mcp.servers import McpServerGroup
from graph_agent.mcp.tools import result_text
from tests.cases.processes import running_with
from tests.fakes.mcp_servers import McpTestServers, demo, odd
from tests.fakes.waiting import until


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    return None


@pytest.mark.slow
async def test_a_server_that_dies_in_a_call_is_restarted_once_and_the_call_is_not_repeated(
    tmp_path: Path,
) -> None:
    harbour, trace = McpTestServers(tmp_path), tmp_path / "trace"
    async with harbour.fleet(demo=demo("--trace", str(trace))) as fleet:
        (server,) = fleet.servers
        with pytest.raises(ServerFailed, match="check before you repeat it"):
            await server.call("die", {}, _ignore)
        again = await server.call("note", {"text": "a"}, _ignore)
        with pytest.raises(ServerFailed, match="went away during the call"):
            await server.call("die", {}, _ignore)
        with pytest.raises(ServerFailed, match="'demo' is not running: it exited"):
            await server.call("note", {"text": "b"}, _ignore)
        left = harbour.registry.names()
        reasons = [fleet.missing_tool_reason(name) for name in ("mcp__demo__note", "mcp__demon__note", "note")]

    assert reasons == ["The MCP server 'demo' is not running: it exited. Continue without it.", "", ""]
    events = [line.split()[0] for line in trace.read_text().splitlines()]
    assert (again.isError, events, left) == (False, ["started", "died", "started", "note", "died"], [])
    assert [warning.partition(": ")[2] for warning in harbour.warnings] == [
        "it exited. Restarting it once.",
        "it exited. Its tools are not available.",
    ]


async def test_resources_are_listed_and_read_by_two_tools_of_a_server_that_has_some(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(plain=demo(), demo=demo("--resources")) as fleet:
        await fleet.wait_until_ready()
        _, server = fleet.servers
        listed, memo, logo, day, bad = [
            await server.call(tool, arguments, _ignore)
            for tool, arguments in (
                ("list_resources", {}),
                ("read_resource", {"uri": "memo://today"}),
                ("read_resource", {"uri": "logo://small"}),
                ("read_resource", {"uri": "memo://of/monday"}),
                ("read_resource", {"uri": "no address"}),
            )
        ]
        with pytest.raises(ServerFailed, match="'demo' returned an error: Unknown resource: memo://never"):
            await server.call("read_resource", {"uri": "memo://never"}, _ignore)
        names = [name for name in harbour.registry.names() if "resource" in name]

    assert names == ["mcp__demo__list_resources", "mcp__demo__read_resource"]
    assert result_text(listed).split("\n") == [
        "memo://today  memo  what is due  text/plain",
        "logo://small  logo  Bytes.  image/png",
        "memo://of/{day}  memo_of  A text for each address of this form.  text/plain",
    ]
    texts = [result_text(one, lambda data: f"blob:{len(data)}") for one in (memo, logo, day)]
    assert texts == [
        "[memo://today]\nfeed the cat",
        "[logo://small, 4 bytes, kept as blob:4]",
        "[memo://of/monday]\nnothing on monday",
    ]
    assert (bad.isError, result_text(bad)) == (
        True,
        "'no address' is not the URI of a resource. list_resources lists them.",
    )


async def test_an_invalid_answer_and_an_error_are_told_apart(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(odd=odd()) as fleet:
        (server,) = fleet.servers
        half = await server.call("half", {}, _ignore)
        with pytest.raises(ServerFailed, match="returned an invalid result"):
            await server.call("nonsense", {}, _ignore)
        with pytest.raises(ServerFailed, match="'odd' returned an error: no such customer"):
            await server.call("refuse", {}, _ignore)

    assert ([part.text for part in half.content if part.type == "text"], harbour.warnings) == (
        ["half of \ufffd"],
        [],
    )


async def test_what_a_server_asks_for_is_refused_and_what_it_floods_with_is_dropped(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    async with harbour.fleet(odd=odd()) as fleet:
        (server,) = fleet.servers
        asked = await server.call("asks", {}, _ignore)
        flooded = await server.call("floods", {}, _ignore)

    assert [part.text for part in asked.content if part.type == "text"] == [
        '["Sampling not supported", "Elicitation not supported", "Invalid request parameters"]'
    ]
    assert [part.text for part in flooded.content if part.type == "text"] == ['["floods", {}]']
    assert server.log.path.stat().st_size < 1_100_000
    assert server.log.invalid_output == "a banner that is no message"
    assert (server.log.last_lines(1)[0][:9], harbour.warnings) == ("line 2999", [])


@pytest.mark.slow
async def test_a_program_that_is_no_server_is_named_with_its_first_output(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    talker = McpServer(command="sh", args=("-c", "echo Listening on port 3000; sleep 862.53"), startup_timeout=2)

    async with harbour.fleet(talker=talker) as fleet:
        await fleet.wait_until_ready()
        left = running_with("862.53")

    (warning,) = harbour.warnings
    assert "its standard output is not MCP messages: 'Listening on port 3000'" in warning
    assert left == []


async def test_a_server_that_leaves_programs_behind_leaves_none(tmp_path: Path) -> None:
    leaver = McpServer(command="sh", args=("-c", "sleep 863.53 & echo gone >&2"))

    async with McpTestServers(tmp_path).fleet(leaver=leaver) as fleet:
        await fleet.wait_until_ready()
        await until(lambda: not running_with("863.53"))

    assert running_with("863.53") == []


async def test_a_server_that_knows_of_no_tools_runs_and_offers_none(tmp_path: Path) -> None:
    harbour, heard = McpTestServers(tmp_path), list[ServerState]()
    around = McpEnvironment(tmp_path, tmp_path, harbour.warnings.append, on_state=heard.append)
    fleet = McpServerGroup({"bare": odd("--without-tools")}, harbour.registry, around)
    fleet.start()
    await fleet.wait_until_ready()
    await fleet.close()

    assert (harbour.warnings, heard) == ([], [ServerState("bare", "starting"), ServerState("bare", "running")])


async def test_a_server_that_never_answers_is_named_with_its_limit_and_leaves_no_process(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    hanging = McpServer(command="sleep", args=("861.53",), startup_timeout=0.3)

    async with harbour.fleet(hang=hanging) as fleet:
        await fleet.wait_until_ready()
        left = running_with("861.53")

    (warning,) = harbour.warnings
    assert left == []
    assert "did not answer within 0.3 s (setting mcp_servers.hang.startup_timeout). Its tools are not" in warning


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (McpServer(command="no-such-program"), "program 'no-such-program' not found"),
        (
            McpServer(command=sys.executable, args=("-c", "raise SystemExit('no such database')")),
            "it ended before it answered (last line: no such database; log:",
        ),
        (
            McpServer(url="http://127.0.0.1:9/mcp"),
            "http://127.0.0.1:9/mcp cannot be reached: nothing answers there",
        ),
    ],
)
async def test_a_server_that_cannot_start_says_why_and_is_not_tried_again(
    tmp_path: Path, server: McpServer, said: str
) -> None:
    harbour = McpTestServers(tmp_path)

    async with harbour.fleet(gone=server) as fleet:
        await fleet.wait_until_ready()

    assert len(harbour.warnings) == 1
    assert said in harbour.warnings[0]


@pytest.mark.slow
async def test_a_call_that_takes_too_long_is_cancelled_at_the_server_too(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    async with McpTestServers(tmp_path).fleet(demo=demo("--trace", str(trace), timeout=1.5)) as fleet:
        (server,) = fleet.servers
        with pytest.raises(TimeoutError):
            await server.call("slow", {"seconds": 30}, _ignore)
        after = await server.call("ping", {}, _ignore)

    assert (after.isError, trace.read_text().splitlines()[-1]) == (False, "cancelled")


@pytest.mark.slow
async def test_standard_error_of_a_server_goes_to_its_log_and_not_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with McpTestServers(tmp_path).fleet(demo=demo()) as fleet:
        await fleet.wait_until_ready()

    assert capfd.readouterr() == ("", "")
    assert "what servers say on the side" in (tmp_path / "mcp-demo.log").read_text()


@pytest.mark.slow
async def test_a_server_that_announces_a_change_at_each_listing_is_listed_rarely(
    tmp_path: Path,
) -> None:
    harbour, heard = McpTestServers(tmp_path), list[ServerState]()
    around = replace(harbour.around, on_state=heard.append)
    fleet = McpServerGroup({"restless": odd("--restless")}, harbour.registry, around)
    fleet.start()
    await fleet.wait_until_ready()
    await asyncio.sleep(1.5)
    result = await fleet.servers[0].call("now", {}, _ignore)
    await fleet.close()

    pages = (tmp_path / "mcp-restless.log").read_text().count("listed")
    assert (result.isError, pages <= 4 * 3) == (False, True)
    assert [now.state for now in heard] == ["starting", "running"]
