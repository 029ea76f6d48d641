import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.cases.bench import Bench, SetUp
from tests.cases.processes import running_with
from tests.fakes.mcp_odd import LONG_NAME
from tests.fakes.openai_server import TC, TCS, TXT
from tests.scenarios.command import until

_FAKES = Path(__file__).parents[1] / "fakes"
_ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _server(name: str, program: str = "mcp_demo.py", *arguments: str, **settings: float | str) -> str:
    words = [str(_FAKES / program), *arguments]
    more = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    started = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(words)}\n"
    return f"[mcp_servers.{json.dumps(name)}]\n{started}{more}"


def _trusting(bench: Bench, config: str, *names: str) -> Bench:
    bench.configure(config)
    for name in names:
        assert bench.command("mcp", "trust", name).returncode == 0
    return bench


def test_a_server_that_hangs_is_named_with_its_limit_and_keeps_nobody_waiting_longer(set_up: SetUp) -> None:
    hang = '[mcp_servers.hang]\ncommand = "sleep"\nargs = ["1000.25"]\nstartup_timeout = 2\n'
    bench = _trusting(set_up(TC("c1", "mcp__good__ping", "{}"), TXT("ok")), hang + _server("good"), "hang", "good")
    began = time.monotonic()

    ran = bench.run()

    assert (ran.ending, bench.results(2)) == ((0, "ok"), ["pong"])
    assert "MCP server 'hang': it did not answer within 2 s (setting mcp_servers.hang.startup_timeout)" in ran.err
    assert (time.monotonic() - began < 20, running_with("1000.25")) == (True, [])


def test_a_server_that_is_not_trusted_is_named_once_a_thread_and_again_when_a_trusted_one_has_changed(
    set_up: SetUp,
) -> None:
    bench = set_up(*[TXT("ok")] * 4)
    bench.configure(_server("good"))
    new = [
        bench.run("--thread", thread, "go").err.count("MCP server 'good' was not started")
        for thread in ("t1", "t1", "t2")
    ]
    _trusting(bench, _server("good"), "good")
    bench.configure(_server("good", "mcp_demo.py", "more"))

    changed = bench.run("--thread", "t1", "go").err.count("MCP server 'good' was not started")

    assert (new, changed) == ([1, 0, 1], 1)


def test_odd_schemas_and_names_are_offered_as_providers_want_them_and_called_as_the_server_knows_them(
    set_up: SetUp,
) -> None:
    name = "customer.data platform"
    available = "mcp__customer_data_platform__synchronize-all-customer-d_12f56126"
    calls = TCS(
        ("c1", "mcp__customer_data_platform__now", "{}"),
        ("c2", "mcp__customer_data_platform__any", ""),
        ("c3", available, '{"to": "x"}'),
    )
    rules = f'[policy]\nallow = ["mcp__{name}__*"]\n'
    bench = _trusting(set_up(calls, TXT("ok")), rules + _server(name, "mcp_odd.py"), name)

    ran = bench.ask("go")

    functions = [tool["function"] for tool in bench.server.bodies[0]["tools"]]
    assert (ran.ending, [json.loads(text) for text in bench.results(2)]) == (
        (0, "ok"),
        [["now", {}], ["any", {}], [LONG_NAME, {"to": "x"}]],
    )
    assert all(_ACCEPTED.fullmatch(function["name"]) for function in functions)
    assert all(
        (function["parameters"]["type"], type(function["parameters"]["properties"])) == ("object", dict)
        for function in functions
    )


def test_a_slow_server_is_waited_for_as_long_as_its_setting_says_and_no_longer(set_up: SetUp) -> None:
    call = TC("c1", "mcp__slow__ping", "{}")
    patient = _trusting(
        set_up(call, TXT("ok")), _server("slow", "mcp_demo.py", "--wait", "3", startup_timeout=20), "slow"
    )
    served = patient.run()
    patient.configure(_server("slow", "mcp_demo.py", "--wait", "3", startup_timeout=1))
    patient.server.replies.append(TXT("without"))
    unserved = patient.run()

    assert (served.ending, patient.results(2)) == ((0, "ok"), ["pong"])
    assert (unserved.ending, "startup_timeout)" in unserved.err) == ((0, "without"), True)


def test_a_server_nobody_trusted_is_not_started_and_run_and_chat_say_how_to_trust_it(set_up: SetUp) -> None:
    bench = set_up(TXT("ok"))
    trace = bench.workspace / "trace"
    bench.configure(_server("new one", "mcp_demo.py", "--trace", str(trace)))

    ran = bench.run()
    chat = bench.chat()
    chat.sees("graph-agent mcp trust 'new one'")
    chat.types("\x04")

    assert (ran.ending, trace.exists(), chat.ends()) == ((0, "ok"), False, 0)
    assert "graph-agent mcp trust 'new one'" in ran.err


def test_a_call_broken_off_by_a_kill_is_not_made_again_and_the_server_dies_with_the_agent(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "mcp__demo__slow", {"seconds": 60}), TXT("ok"))
    trace = bench.workspace / "trace"
    _trusting(bench, _server("demo", "mcp_demo.py", "--trace", str(trace), timeout=120), "demo")
    process = bench.command.start("run", "go", "--thread", "t", "--mode", "bypassPermissions")
    until(lambda: bool(_statuses(bench)) and _statuses(bench)[-1] == "executing")
    time.sleep(0.5)
    bench.command.kill(process)
    # Where the kernel cannot tie a process to another, the server ends when it reads the end of its input.
    until(lambda: not running_with(str(trace)))

    waiting = bench.ask("--resume", "t")
    gone_on = bench.ask("--resume", "t", "--recover", "cancel")

    assert (waiting.code, gone_on.ending) == (4, (0, "ok"))
    assert (_statuses(bench), trace.read_text().count("started")) == (["cancelled"], 3)


def test_an_approved_call_waits_for_its_server_in_the_next_run_and_the_chat_shows_its_state(
    set_up: SetUp,
) -> None:
    bench = set_up(TC("c1", "mcp__demo__note", {"text": "a"}), TXT("ok"))
    trace = bench.workspace / "trace"
    _trusting(bench, _server("demo", "mcp_demo.py", "--trace", str(trace), "--wait", "1"), "demo")

    waiting = bench.ask("go", "--thread", "t")
    approved = bench.command("approvals", "approve", "c1")
    chat = bench.chat("resume", "t")
    chat.sees("ok")
    chat.types("/mcp\r")
    chat.sees("running, 8 tools")
    chat.types("\x04")

    assert (waiting.code, approved.returncode, chat.ends()) == (3, 0, 0)
    assert [line for line in trace.read_text().splitlines() if line.startswith("note")] == ["note a"]


def test_a_stop_leaves_no_server_behind(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "mcp__demo__slow", {"seconds": 60}))
    trace = bench.workspace / "trace"
    _trusting(bench, _server("demo", "mcp_demo.py", "--trace", str(trace), timeout=120), "demo")
    process = bench.command.start("run", "go", "--thread", "t", "--mode", "bypassPermissions")
    until(lambda: bool(_statuses(bench)) and _statuses(bench)[-1] == "executing")

    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)

    assert (process.returncode, running_with(str(trace))) == (143, [])


def test_a_server_over_http_is_used_like_any_other_and_a_broken_setting_is_named(set_up: SetUp) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = subprocess.Popen(
        [sys.executable, str(_FAKES / "mcp_demo.py"), "--http", str(port)], stderr=subprocess.PIPE
    )
    try:
        assert served.stderr is not None
        served.stderr.readline()
        headers = 'headers = { Authorization = "Bearer ${OPENAI_API_KEY}" }'
        config = f'[mcp_servers.net]\nurl = "http://127.0.0.1:{port}/mcp"\n{headers}\n'
        bench = _trusting(set_up(TC("c1", "mcp__net__ping", "{}"), TXT("ok")), config, "net")
        until(lambda: _listens(port))
        ran = bench.run()
        bench.configure("[mcp_servers.net]\nurl = 'http://x/'\ncommand = 'y'\nenv = { TOKEN = 'sk-hidden' }\n")
        wrong = bench.run()
    finally:
        served.kill()
        served.communicate()

    assert (ran.ending, bench.results(2)) == ((0, "ok"), ["pong"])
    assert (wrong.code, "mcp_servers.net: should have either a command or a url." in wrong.err) == (2, True)
    assert "sk-hidden" not in wrong.err


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _statuses(bench: Bench) -> list[str]:
    told = bench.command("calls", "--json")
    return [call["status"] for call in json.loads(told.stdout)["calls"]] if told.returncode == 0 else []
