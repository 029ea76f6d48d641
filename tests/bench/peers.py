"""`make bench-peers`: other agents on the same work, against one scripted server that speaks their protocols.

Each is installed from its registry into build/peers, in the newest version, and plays one turn: a number of shell
commands that print four kilobytes each. The table goes into docs/performance.md. Run it on a quiet machine.

python -m tests.bench.peers [--only NAME]... [--steps N]
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.bench.figures import PYTHON

__all__: list[str] = []

_INSTALLED = Path("build/peers").resolve()
_PAGE = Path("docs/performance.md")
_BEGIN, _END = "<!-- peers -->\n", "<!-- end of peers -->\n"
_MARKS = (10, 100, 300)
_AROUND = 5
_SHELLS = ("bash", "shell", "exec_command", "shell_command")
_COMMAND = "head -c 4000 book.txt"
_TIMEOUT_S = 900


class _Server(ThreadingHTTPServer):
    """Asks for a shell command in each reply, in the protocol of the request, and says `end` after so many."""

    daemon_threads = True

    def __init__(self, steps: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = steps
        self.came: list[float] = []
        """When each request with tools came; others are for titles and the like."""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def reply(self, body: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The call to make, by tool and arguments; none at the end."""
        shell = _shell(body.get("tools") or ())
        if shell is None:
            return "", None
        self.came.append(time.monotonic())
        return (shell[0], shell[1]) if len(self.came) <= self.steps else ("", None)


def _shell(tools: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]] | None:
    """The tool that runs commands, and its arguments."""
    for tool in tools:
        described = tool.get("function") or tool
        schema = described.get("parameters") or described.get("input_schema") or {}
        if str(described.get("name", "")).lower() in _SHELLS:
            known: Mapping[str, Any] = schema.get("properties") or {}
            name = "cmd" if "cmd" in known else "command"
            is_list = (known.get(name) or {}).get("type") == "array"
            arguments: dict[str, Any] = {name: ["bash", "-c", _COMMAND] if is_list else _COMMAND}
            return str(described["name"]), arguments | ({"description": "look"} if "description" in known else {})
    return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"data": [{"id": "fake"}], "models": []}', "application/json")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._send(b'{"input_tokens": 1000}', "application/json")
            return
        form = next((form for end, form in _FORMS.items() if path.endswith(end)), None)
        if form is None:
            self._send(b"{}", "application/json")
            return
        name, arguments = self.server.reply(body)
        call_id = f"call_{len(self.server.came)}"
        answer = form(name, arguments, call_id)
        if not body.get("stream"):
            self._send(json.dumps(answer.whole).encode(), "application/json")
            return
        events = "".join(map(_event, answer.events))
        self._send(f"{events}{answer.ending}".encode(), "text/event-stream")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _event(one: Mapping[str, Any]) -> str:
    name = f"event: {one['type']}\n" if "type" in one else ""
    return f"{name}data: {json.dumps(one)}\n\n"


@dataclass(frozen=True)
class _Answer:
    whole: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    ending: str = ""


def _chat(name: str, arguments: dict[str, Any] | None, call_id: str) -> _Answer:
    message: dict[str, Any] = {"role": "assistant", "content": "end" if arguments is None else None}
    if arguments is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"index": 0, "id": call_id, "type": "function", "function": function}]
    frame = {"id": "c", "created": 1, "model": "fake"}
    finish = "stop" if arguments is None else "tool_calls"
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
    ]
    events = [{**frame, "object": "chat.completion.chunk", **chunk} for chunk in chunks]
    return _Answer({**frame, "object": "chat.completion", **whole}, events, "data: [DONE]\n\n")


def _responses(name: str, arguments: dict[str, Any] | None, call_id: str) -> _Answer:
    if arguments is None:
        content = [{"type": "output_text", "text": "end", "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        item["content"] = content
    else:
        item = {"type": "function_call", "id": f"f{call_id}", "call_id": call_id, "name": name}
        item |= {"arguments": json.dumps(arguments), "status": "completed"}
    usage: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response: dict[str, Any] = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [item],
        "usage": usage | details,
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return _Answer(response, events)


def _messages(name: str, arguments: dict[str, Any] | None, call_id: str) -> _Answer:
    usage = {"input_tokens": 1000, "output_tokens": 10}
    frame = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "usage": usage}
    if arguments is None:
        block: dict[str, Any] = {"type": "text", "text": "end"}
        begun: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "end"}
    else:
        block = {"type": "tool_use", "id": f"toolu_{call_id}", "name": name, "input": arguments}
        begun = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    stop = "end_turn" if arguments is None else "tool_use"
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**frame, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return _Answer({**frame, "content": [block], "stop_reason": stop}, events)


_FORMS: Mapping[str, Callable[[str, dict[str, Any] | None, str], _Answer]] = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _messages,
}


@dataclass(frozen=True)
class _Peer:
    """How an agent is installed and started."""

    name: str
    package: str
    """Behind the tool that installs it, `npm` or `pip`; a dot for this program, installed anew each time."""
    command: Callable[[str], Sequence[str]]
    """From the address of the server; the program itself is in the folder `bin` of its installation."""
    env: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return _INSTALLED / self.name.replace(" ", "-")


def _opencode_env(url: str) -> Mapping[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "any"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"fake": {}}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"fake": provider}, "permission": "allow"})}


_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "fake")
_PEERS = (
    _Peer(
        "graph-agent",
        "pip .",
        lambda _: ["graph-agent", "run", "go", "--mode", "bypassPermissions", "--max-steps", "1000"],
        lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "any", "GRAPH_AGENT_MODEL": "fake"},
    ),
    _Peer(
        "Claude Code",
        "npm @anthropic-ai/claude-code",
        lambda _: ["claude", "-p", "go", "--dangerously-skip-permissions", "--model", "fake"],
        lambda url: (
            {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any", "IS_SANDBOX": "1"}
            | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        ),
    ),
    _Peer(
        "codex",
        "npm @openai/codex",
        lambda url: [
            *("codex", *_CODEX, "-c", "model_provider=fake"),
            *("-c", f'model_providers.fake={{name="fake",base_url="{url}/v1",wire_api="responses"}}', "go"),
        ],
    ),
    _Peer("opencode", "npm opencode-ai", lambda _: ["opencode", "run", "-m", "fake/fake", "go"], _opencode_env),
    _Peer(
        "mini-swe-agent",
        "pip mini-swe-agent",
        lambda _: ["mini", "--yolo", "--exit-immediately", "--cost-limit", "0", "-m", "openai/fake", "-t", "go"],
        lambda url: (
            {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "any", "MSWEA_CONFIGURED": "true"}
            | {"MSWEA_COST_TRACKING": "ignore_errors"}
        ),
    ),
    _Peer("mistral-vibe", "pip mistral-vibe", lambda _: ["vibe", "-p", "go"]),
)


def _install(peer: _Peer) -> tuple[str, float]:
    """Install it, unless it is there; returns its version, and its megabytes on disk with all dependencies.

    Raises:
        RuntimeError: it cannot be installed.
    """
    folder, (installer, _, package) = peer.folder, peer.package.partition(" ")
    if package == ".":
        shutil.rmtree(folder, ignore_errors=True)
    if installer == "npm" and not shutil.which("npm"):
        raise RuntimeError("cannot be installed: npm is not there; it comes with Node.js")
    if not folder.exists():
        folder.mkdir(parents=True)
        _run_installer(installer, package, folder)
    listing = ["npm", "ls", "--prefix", str(folder), package] if installer == "npm" else None
    listing = listing or [str(folder / "bin" / "python"), "-m", "pip", "show", peer.name]
    shown = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
    pattern = rf"{re.escape(package)}@(\S+)" if installer == "npm" else r"Version: (\S+)"
    version = re.search(pattern, shown)
    return version[1] if version else "of an unknown version", _size_mb(folder)


def _size_mb(folder: Path) -> float:
    files = (file for file in folder.rglob("*") if not file.is_symlink() and file.is_file())
    return sum(file.stat().st_size for file in files) / 1_000_000


_INSTALL_TIMEOUT_S = 600


def _run_installer(installer: str, package: str, folder: Path) -> None:
    if installer == "npm":
        steps = [["npm", "install", "--silent", "--prefix", str(folder), package]]
    else:
        pip = str(folder / "bin" / "pip")
        install = [pip, "install", "-q", "--disable-pip-version-check", package]
        steps = [[PYTHON, "-m", "venv", str(folder)], install]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, check=False, timeout=_INSTALL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            shutil.rmtree(folder)
            raise RuntimeError(f"cannot be installed: it takes longer than {_INSTALL_TIMEOUT_S} s") from None
        if done.returncode:
            shutil.rmtree(folder)
            needed = re.findall(r"Requires-Python (\S+?);", done.stderr)
            said = [line for line in done.stderr.splitlines() if "ERROR" in line or "ERR!" in line]
            said += [f"{installer} ended with {done.returncode}"]
            reason = f"it needs Python {needed[-1]}" if needed else said[0]
            raise RuntimeError(f"cannot be installed: {reason}")


@dataclass(frozen=True)
class _Played:
    start_s: float
    step_ms: Sequence[float | None]
    peak_mb: float
    cpu_s: float


def _play(peer: _Peer, steps: int) -> _Played:
    """Let it play one turn.

    Raises:
        RuntimeError: it did not reach the end of the turn.
    """
    with tempfile.TemporaryDirectory(prefix="peer-") as home:
        workspace = Path(home) / "workspace"
        workspace.mkdir()
        (workspace / "book.txt").write_text("a line of a book that is long enough\n" * 200, encoding="utf-8")
        server = _Server(steps)
        path = f"{peer.folder / 'bin'}:{peer.folder / 'node_modules' / '.bin'}:{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
        env = {**kept, "PATH": path, "HOME": home, "GRAPH_AGENT_HOME": f"{home}/agent", **peer.env(server.url)}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        try:
            done = subprocess.run(
                peer.command(server.url), cwd=workspace, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise RuntimeError(f"could not be driven: {failure}") from failure
        finally:
            server.shutdown()
        after, came = resource.getrusage(resource.RUSAGE_CHILDREN), server.came
    if len(came) <= steps:
        raise RuntimeError(f"made {len(came)} of {steps + 1} requests: {(done.stderr or done.stdout)[-200:]!r}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Played(came[0] - began, [_step_ms(came, mark) for mark in _MARKS], after.ru_maxrss / 1024, cpu)


def _step_ms(came: Sequence[float], mark: int) -> float | None:
    gaps = [came[at + 1] - came[at] for at in range(mark - _AROUND, mark + _AROUND) if at + 1 < len(came)]
    return statistics.median(gaps) * 1000 if len(gaps) > _AROUND else None


def _rows(chosen: Sequence[_Peer], steps: int) -> Iterator[str]:
    for peer in chosen:
        try:
            version, size = _install(peer)
            # `--one`: the peak is that of the largest child this process ever had, so each agent needs a process.
            played = _play(peer, steps)
        except RuntimeError as failure:
            yield f"| {peer.name} | {' '.join(str(failure).split())[:160].replace('|', '/')} | | | | |"
            continue
        times = " / ".join("-" if ms is None else f"{ms:.0f}" for ms in played.step_ms)
        cells = (
            f"{peer.name} {version}".strip(),
            f"{played.start_s:.2f}",
            times,
            f"{played.cpu_s:.0f}",
            f"{size:.0f}",
        )
        yield f"| {' | '.join(cells)} | {played.peak_mb:.0f} |"


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers")
    names = [peer.name for peer in _PEERS]
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--steps", type=int, default=_MARKS[-1] + _AROUND)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = [name for name in names if not options.only or name in options.only]
    if options.one:
        sys.stdout.write("\n".join(_rows([peer for peer in _PEERS if peer.name in chosen], options.steps)))
        return
    rows = []
    for name in chosen:
        command = [PYTHON, "-m", "tests.bench.peers", "--one", "--only", name, "--steps", str(options.steps)]
        rows.append(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        sys.stdout.write(f"{rows[-1]}\n")
        sys.stdout.flush()
    if options.only is None:
        _put_into_page(rows, options.steps)


def _put_into_page(rows: Sequence[str], steps: int) -> None:
    marks = " / ".join(map(str, _MARKS))
    head = [
        f"Measured on {datetime.now(UTC).date()}, load {os.getloadavg()[0]:.1f}; one turn of {steps} commands.\n",
        f"| agent | s to first request | ms of a step at {marks} | processor s | MB on disk | peak MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    text = _PAGE.read_text(encoding="utf-8")
    found = re.compile(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
    body = "\n".join([*head, *rows])
    _PAGE.write_text(found.sub(lambda _: f"{_BEGIN}{body}\n{_END}", text), encoding="utf-8")


if __name__ == "__main__":
    _main()
