import os
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cases.bench import Bench, bash
from tests.fakes.openai_server import ERR, TCS, FakeOpenAI
from tests.scenarios.command import NO_SANDBOX, Command

_KEY = "sk-geheim-1234567890"
_HEADER = "header-geheim-0987654321"
_PASSWORD = "url-geheim-1122334455"  # noqa: S105 - made up, to be looked for
_KEY_IN_PATH = "pfadgeheim5544332211"
_SECRETS = (_KEY, _HEADER, _PASSWORD, _KEY_IN_PATH)

_LEAKS = """
tr '\\0' '\\n' < /proc/$PPID/environ | grep geheim; grep -rh geheim "$H"
head -c 90000 /dev/zero | tr '\\0' x; grep -rh geheim "$H"; true
"""


def _holding(folder: Path, but: Callable[[Path], bool]) -> list[str]:
    """The files below a folder in which one of the secrets stands."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not but(path)]
    return [str(path) for path in files if any(secret.encode() in path.read_bytes() for secret in _SECRETS)]


def test_no_key_gets_from_a_tools_output_into_state_blobs_logs_events_exports_or_requests(tmp_path: Path) -> None:
    # A name that only the shell knows: a command that names the agent's own files does not run at all.
    leaks = _LEAKS.replace('"$H"', '"$(printf %s ../ho me/config.toml)"')
    replies = [TCS(bash("c1", leaks)), ERR(401, {"error": {"message": f"wrong key {_KEY}, {_HEADER}"}})]
    with FakeOpenAI(replies) as server:
        bench = Bench(tmp_path, server, {"OPENAI_API_KEY": _KEY})
        bench.configure(f'{NO_SANDBOX}[model.headers]\nX-Proxy = "Bearer {_HEADER}"\n')

        order = ("run", "go", "--thread", "t", "--output", "stream-json", "--mode", "bypassPermissions")
        # A process started for real has its keys where a child can look for them.
        ran = bench.command.run_cold(*order)

        shown = [ran.stdout, ran.stderr]
        for arguments in (
            ("threads", "show", "t", "--json"),
            ("inspect", "t", "--full"),
            ("calls",),
            ("threads", "list"),
        ):
            done = bench.command(*arguments)
            shown += [done.stdout, done.stderr]
        exported = bench.command("threads", "export", "t").stdout
        results = bench.results(2)
        bodies = str(server.bodies)

    def is_config_or_spool(path: Path) -> bool:
        return path.name == "config.toml" or path.suffix == ".out"

    assert ran.returncode == 6
    assert ("*" * len(_KEY) in results[0], "OPENAI_API_KEY=" in results[0]) == (True, True)
    assert [word for word in _SECRETS for text in (*shown, exported, bodies) if word in text] == []
    assert _holding(tmp_path, is_config_or_spool) == []


_ADDRESS = f"http://me:{_PASSWORD}@127.0.0.1:9/s/{_KEY_IN_PATH}"
_MODEL = {"GRAPH_AGENT_MODEL": "m", "OPENAI_API_KEY": _KEY}
_RUN = ("run", "hi", "--output", "json", "--timeout", "1")
_ADDRESSES: Mapping[str, tuple[str, Mapping[str, str], Sequence[tuple[str, ...]]]] = {
    "model": ("", {**_MODEL, "OPENAI_BASE_URL": _ADDRESS}, [_RUN, ("model", "list")]),
    "profile": (f'[models.far]\nname = "m"\nbase_url = "{_ADDRESS}"\n', {}, [("model", "list")]),
    "collector": (f'otel_endpoint = "{_ADDRESS}"\n', {}, [_RUN]),
    "collector in a variable": ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": _ADDRESS}, [_RUN]),
    "web search": (f'[web_search]\nprovider = "searxng"\nurl = "{_ADDRESS}"\n', {}, [("tools", "list")]),
    "MCP server": (f'[mcp_servers.far]\nurl = "{_ADDRESS}"\n', {}, [("mcp", "list"), ("mcp", "test", "far")]),
    "webhook": (f'[notify]\nwebhook = "{_ADDRESS}"\nntfy = "{_ADDRESS}"\n', {}, []),
    "option": ("", {}, [("run", "hi", "--notify", _ADDRESS.replace("http", "ftp"))]),
    "proxy": ("", {**_MODEL, "OPENAI_BASE_URL": "http://m.invalid/v1", "http_proxy": _ADDRESS}, [_RUN]),
    "proxy of no kind": (
        "",
        {**_MODEL, "OPENAI_BASE_URL": "http://m.invalid/v1", "http_proxy": _ADDRESS.replace("http", "ftp")},
        [_RUN],
    ),
    "unusable model": ("", {**_MODEL, "OPENAI_BASE_URL": _ADDRESS.replace("http", "ftp")}, [_RUN]),
    "no address": ("", {**_MODEL, "OPENAI_BASE_URL": f"{_PASSWORD}@host"}, [_RUN]),
    "unusable collector": (f'otel_endpoint = "{_ADDRESS}?a b"\n', {}, [_RUN]),
    "unusable search": (f'[web_search]\nurl = "{_ADDRESS.replace("http", "ftp")}"\n', {}, [_RUN]),
    "unusable server": (f'[mcp_servers.far]\nurl = "{_ADDRESS}#x"\n', {}, [_RUN]),
}


@pytest.mark.parametrize("kind", _ADDRESSES)
def test_what_is_secret_in_an_address_is_shown_by_no_command(tmp_path: Path, kind: str) -> None:
    settings, variables, orders = _ADDRESSES[kind]
    command = Command(tmp_path, extra_env=variables, settings=settings)

    told = [command(*order) for order in (*orders, ("config", "show", "--json"), ("doctor",))]

    shown = [line for done in told for line in (done.stdout + done.stderr).splitlines()]
    assert [line for line in shown if any(word in line for word in _SECRETS)] == []
    assert _holding(tmp_path, lambda path: path.name == "config.toml") == []


def test_no_library_reports_a_conversation_to_its_maker_whatever_the_environment_asks_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as maker:
        maker.setblocking(False)  # noqa: FBT003 - the name of the socket's own parameter
        address = f"http://127.0.0.1:{maker.getsockname()[1]}"
        names = [
            f"{maker_name}_{word}"
            for maker_name in ("LANGSMITH", "LANGCHAIN")
            for word in ("TRACING", "TRACING_V2")
        ]
        ends = {
            f"{name}_{word}": address for name in ("LANGSMITH", "LANGCHAIN") for word in ("ENDPOINT", "API_KEY")
        }
        command = Command(tmp_path, extra_env={**dict.fromkeys(names, "true"), **ends})

        ran = command("run", "list")

        with pytest.raises(BlockingIOError):
            maker.accept()
    assert ran.returncode == 0


def _modes(folder: Path) -> Mapping[str, str]:
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}
    return {str(path): oct(mode) for path, mode in found.items() if mode & 0o077}


def test_nobody_else_can_read_anything_the_agent_keeps_whatever_the_umask(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"EDITOR": "true"})
    (command.workspace / "AGENTS.md").write_text("x\n")
    home, umask = tmp_path / "home", os.umask(0)
    try:
        codes = [
            command(*arguments).returncode
            for arguments in (
                ("run", "remember that x", "--mode", "bypassPermissions"),
                ("memory", "edit"),
                ("config", "set", "max_steps", "9"),
                ("config", "trust", "--yes"),
                (
                    "run",
                    "run head -c 100000 /dev/zero | tr '\\0' x",
                    "--mode",
                    "bypassPermissions",
                    "--thread",
                    "t",
                ),
                ("run", "create a.txt with hi", "--mode", "bypassPermissions", "--thread", "t"),
                ("doctor", "--backup", str(home / "backup.db")),
                ("threads", "prune", "t"),
            )
        ]
    finally:
        os.umask(umask)

    assert (codes, _modes(home)) == ([0] * len(codes), {})
    assert len(list(home.rglob("*"))) > 15
