import os
import socket
import stat
import sys
import time
from pathlib import Path

import pytest
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from graph_agent.config.settings import McpServer
from graph_agent.mcp.client import Signals, open_mcp_session
from graph_agent.mcp.settings import ServerUnreachable
from graph_agent.mcp.transport import Launch, ServerLog, error_response, open_program, open_streams, parse_message
from tests.cases.processes import running_with
from tests.fakes.sandboxes import sandbox
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules

_LOOK_SERVER = """
import json, os, socket, sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("looks", log_level="ERROR")


@server.tool()
def look(home: str, port: int) -> str:
    done = []
    for path in (os.path.join(home, "planted"), "made"):
        try:
            open(path, "w").close()
            done.append("wrote")
        except OSError:
            done.append("kept in")
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        done.append("reached")
    except OSError:
        done.append("unreached")
    return " ".join(done)


server.run()
"""


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, "kept in wrote unreached"),
        ({"network": True}, "kept in wrote reached"),
        ({"sandbox": False}, "wrote wrote reached"),
    ],
)
@pytest.mark.slow
async def test_a_server_runs_in_the_sandbox_as_far_as_its_settings_say(
    tmp_path: Path, settings: dict[str, bool], found: str
) -> None:
    workspace, program = tmp_path / "ws", tmp_path / "looks.py"
    workspace.mkdir()
    program.write_text(_LOOK_SERVER)
    server = McpServer.model_validate({"command": sys.executable, "args": [str(program)], **settings})
    box = sandbox("bubblewrap", workspace)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with open_mcp_session(server, workspace, ServerLog(tmp_path / "log"), Signals(), box) as talk:
            result = await talk.call("look", {"home": str(Path.home()), "port": port}, _ignore_progress)

    assert [part.text for part in result.content if part.type == "text"] == [found]
    assert [path.name for path in workspace.iterdir()] == ["made"]


async def _ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


async def test_a_server_is_not_started_where_a_sandbox_is_required_and_there_is_none(tmp_path: Path) -> None:
    box = Sandbox(SandboxRules((tmp_path,)), is_required=True, look=lambda: SandboxBackend("none", why="no means"))

    with pytest.raises(ServerUnreachable, match="the sandbox is unavailable: no means"):
        async with open_streams(McpServer(command=sys.executable), tmp_path, ServerLog(tmp_path / "log"), box):
            pass


@pytest.mark.parametrize("half", ["\\ud83d", "\\uD83D"])
def test_half_a_surrogate_pair_is_replaced(half: str) -> None:
    read = parse_message(f'{{"jsonrpc": "2.0", "method": "m", "params": {{"text": "half {half}"}}}}')

    assert read is not None
    assert read.message.root == JSONRPCNotification(jsonrpc="2.0", method="m", params={"text": "half \ufffd"})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method": "m"}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": null, "method": "m"}', JSONRPCNotification),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}, "error": null}', JSONRPCResponse),
        ('{"jsonrpc": "2.0", "id": "a", "error": {"code": 1, "message": "no"}}', JSONRPCError),
        *[(line, None) for line in ("a banner", "{}", "[]", "3", '{"jsonrpc": "1.0"}', "[" * 100_000)],
    ],
)
def test_the_keys_of_a_message_show_its_kind_and_other_lines_are_no_message(line: str, kind: type | None) -> None:
    read = parse_message(line)

    assert (None if read is None else type(read.message.root)) is kind


@pytest.mark.parametrize(
    ("beginning", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[', 7),
        (b' { "id" : 7, "jsonrpc": "2.0", "result" : {"content":[', 7),
        (b"x" * 256, None),
        (b'{"jsonrpc":"2.0","method":"m","params":{"id":7,', None),
        (b'{"id":"7","result":{', None),
        (b"", None),
    ],
)
def test_a_dropped_response_is_replaced_by_an_error_and_other_lines_by_nothing(
    beginning: bytes, request_id: int | None
) -> None:
    response = error_response(beginning, "too long")

    error = None if response is None else response.message.root
    assert (error is None) == (request_id is None)
    if isinstance(error, JSONRPCError):
        assert (error.id, error.error.message) == (request_id, "too long")


_SAY = """echo '{"jsonrpc": "2.0", "method": "m"}'"""


@pytest.mark.parametrize(
    ("script", "count", "last_lines", "invalid"),
    [
        pytest.param(
            f"head -c 40000000 /dev/zero | tr '\\0' x; echo; {_SAY}; echo; echo banner; {_SAY}",
            2,
            (),
            "a line of more than 32 MB",
            id="a line that never ends is dropped, the next ones are read",
        ),
        pytest.param(f"{_SAY}; echo why >&2; exit 3", 1, ("why",), "", id="the last output is in the log"),
        pytest.param(f"{_SAY}; sleep 863.53 & exit 0", 1, (), "", id="processes left behind end with it"),
    ],
)
async def test_messages_of_a_program_are_read_until_it_ends(
    script: str, count: int, last_lines: tuple[str, ...], invalid: str, tmp_path: Path
) -> None:
    log = ServerLog(tmp_path / "log")
    log.begin()
    async with open_program(Launch(("sh", "-c", script), dict(os.environ), tmp_path), log) as (read, _):
        messages = [message async for message in read]

    assert (len(messages), log.last_lines(2), log.invalid_output) == (count, last_lines, invalid)
    assert running_with("863.53") == []


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        pytest.param(
            ("sh", "-c", "trap '' TERM; while :; do sleep 864.53; done"),
            10,
            marks=pytest.mark.slow,
            id="ignores all",
        ),
        pytest.param(("sleep", "864.54"), 1.5, id="never spoke"),
    ],
)
async def test_a_program_ends_with_the_block(words: tuple[str, ...], seconds: float, tmp_path: Path) -> None:
    began = time.monotonic()

    async with open_program(Launch(words, dict(os.environ), tmp_path), ServerLog(tmp_path / "log")):
        pass

    # Each row has a time of its own, as another worker may be running the other row.
    mark = words[-1].split()[-2].removesuffix(";") if words[0] == "sh" else words[-1]
    assert (running_with(mark), time.monotonic() - began < seconds) == ([], True)


async def test_a_program_that_cannot_be_started_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        async with open_program(Launch(("/no-such-program",), {}, tmp_path), ServerLog(tmp_path / "log")):
            pass


def test_a_flood_leaves_its_end_in_a_small_log(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    log.begin()

    for number in range(300):
        log.write(b"x" * 10_000 + b"\n%d\n" % number)

    assert log.path.stat().st_size < 1024 * 1024 + 20_000
    assert log.last_lines(1) == ("299",)


def test_a_new_run_begins_with_an_empty_log(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    before = log.last_lines(3)
    log.begin()
    log.write("größer\n\n  spaced \n".encode())
    log.note_invalid_output(" first\n")
    log.note_invalid_output("second")
    told = (log.last_lines(2), log.invalid_output)
    log.begin()

    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert (before, told, log.last_lines(2), log.invalid_output) == ((), (("größer", "spaced"), "first"), (), "")
