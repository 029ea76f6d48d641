import importlib.util
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import httpx
import pytest

import graph_agent
from graph_agent import open_graph, open_session
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.session.session import Session
from tests.architecture.checkout import ROOT
from tests.fakes.forked_command import run_forked
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command, free_port, until

PROGRAMS: list[str] = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/embedding.md").read_text(encoding="utf-8"), re.DOTALL
)
WHOLE, AFTER_A_KILL, *ON_THE_GRAPH, ENDPOINT, CELL = PROGRAMS


def program(
    text: str, folder: Path, environment: Mapping[str, str], *arguments: str, answer: str = "y\n"
) -> tuple[int, str]:
    """Run a program of the page as a stranger would; returns its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=folder,
        env=environment,
        input=answer,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def forked_program(text: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """The same in a process that need not load the libraries again."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    done = run_forked((), folder, environment, "y\n", module="program")
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_programs_of_the_page_work_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/prices.py").write_text("print('total 8.35')\n")
    command = Command(tmp_path)
    waiting = command("run", "run touch hi", "--thread", "left", "--workspace", str(tmp_path / "project"))

    asked, answered = program(WHOLE, tmp_path, command.env)
    code, told = program(AFTER_A_KILL, tmp_path, command.env, "left")

    assert waiting.returncode == 3
    assert (asked, "bash {'command': 'python3 prices.py'} [y/n] " in answered) == (0, True)
    assert re.search(r"^done [0-9a-f]{32} .*total 8\.35\n", answered, re.MULTILINE | re.DOTALL)
    # Its risk is lower where there is a sandbox.
    assert (code, re.sub("has .* risk: it .*", "…", told)) == (0, "approval bash bash …\ndone\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "printed"),
    list(
        zip(
            ON_THE_GRAPH,
            [
                r"\[tool_call_started\]\n\[tool_result\].*total 8\.35",
                r"^approved: .*touch approved\.txt.*\n\{'bash': 'success'\}$",
                r"^It has one line\.$",
                r"^\[\('denied', 'deny read_file\(prices\.py\)'\)\]$",
                r"^4 messages$",
                r"^4 messages$",
                r"^\[8, 4\]\n8$",
                r"^done: .*\ndone: .*\n(done|stopped): ",
            ],
            strict=True,
        )
    ),
    ids=("stream", "approve", "tool", "rule", "saver", "part", "history", "batch"),
)
def test_the_programs_on_the_graph_print_what_they_are_for(tmp_path: Path, text: str, printed: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/prices.py").write_text("print('total 8.35')\n")
    script = [TC("c1", "count_lines", {"file_path": "prices.py"}), TXT("It has one line.")]

    with FakeOpenAI(script) as server:
        # The offline mode does not know tools of others.
        address = server.base_url if "create_tool" in text else None
        code, told = forked_program(text, tmp_path, Command(tmp_path, address).env)

    assert (code, re.search(printed, told.rstrip(), re.DOTALL) is not None) == (0, True), told
    if address is not None:
        assert server.bodies[-1]["messages"][-1]["content"] == "1 lines"


@pytest.mark.slow
def test_the_endpoint_of_the_page_streams_events_and_the_cell_runs_where_a_loop_runs(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/prices.py").write_text("print('total 8.35')\n")
    (tmp_path / "endpoint.py").write_text(ENDPOINT)
    command, port = Command(tmp_path), free_port()
    cell = f"import ast, asyncio; code = compile({CELL!r}, 'cell', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
    cell += "asyncio.run(eval(code, {}))"
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "endpoint:app", "--port", str(port), "--log-level", "error"],
        cwd=tmp_path,
        env=command.env,
    )
    try:
        code, told = program(cell, tmp_path, command.env)
        until(lambda: _is_open(port))
        asked = {"thread": "t", "text": "read prices.py"}
        streamed = httpx.post(f"http://127.0.0.1:{port}/ask", json=asked, timeout=30, trust_env=False).text
    finally:
        server.terminate()
        server.wait(timeout=30)

    assert (code, "done " in told) == (0, True), told
    kinds = re.findall(r"^event: (\w+)$", streamed, re.MULTILINE)
    assert ("tool_result" in kinds, kinds[-1]) == (True, "message")


ALONE = [
    text
    for page in ("tools", "rules")
    for text in re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text("utf-8"), re.DOTALL)
    if text.startswith(("import ", "from ")) and "print(" in text
]
"""The programs that use tools and policy without the agent."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "printed"),
    list(
        zip(
            ALONE,
            [
                r"count_words ok: 4 words\nread_file ok: .*\nread_file failed: .*\nbash failed: .*\nfly failed: ",
                r"^allow: .*total 8\.35.*\nask: .* /etc/motd, .*\[y/n\] deny: .*secrets/.*\ndeny: .* all of /\.$",
                r"^allow: .*\ndeny: deny send_mail\(.*\nask: risk medium\nask: .*\nls -l: not .*\nrm -rf ~: it",
            ],
            strict=True,
        )
    ),
    ids=("tools", "tools and policy", "policy"),
)
def test_the_programs_without_the_agent_print_what_they_are_for(tmp_path: Path, text: str, printed: str) -> None:
    for name in ("project", "shared"):
        (tmp_path / name).mkdir()
    (tmp_path / "project/prices.py").write_text("print('total 8.35')\n")
    (tmp_path / "secret.txt").touch()

    code, told = program(text, tmp_path, Command(tmp_path).env, answer="n\n")

    assert (code, re.search(printed, told.rstrip(), re.DOTALL) is not None) == (0, True), told


@pytest.mark.slow
def test_the_programs_of_the_pages_and_the_examples_are_typed(tmp_path: Path) -> None:
    for number, text in enumerate([*PROGRAMS[:-1], *ALONE]):
        (tmp_path / f"program_{number}.py").write_text(text)
    for file in (ROOT / "examples").glob("*/*.py"):
        if "fastapi" not in (text := file.read_text("utf-8")) or importlib.util.find_spec("fastapi"):
            (tmp_path / file.name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("", 0)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "given", [("user", "hi"), [("user", "hi")], {"role": "user", "content": "hi"}, ["hi"], [["user", "hi"]]]
)
async def test_every_short_form_of_a_message_is_taken_as_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: object
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    config: Any = {"configurable": {"thread_id": "t"}}
    async with open_graph(workspace=tmp_path) as graph:
        for _ in range(2):
            values = await graph.ainvoke({"messages": given}, config)
        stored = (await graph.aget_state(config)).values["messages"]

    typed = [message.text for message in values["messages"] if message.type == "human"]
    assert typed == [message.text for message in stored if message.type == "human"] == ["hi", "hi"]


async def test_a_session_is_closed_when_its_block_is_left(tmp_path: Path) -> None:
    async with open_session(workspace=str(tmp_path), thread_id="t") as session:
        assert_type(session, Session)
        with pytest.raises(ThreadHeld):
            await open_session(workspace=tmp_path, thread_id="t")

    again = await open_session(workspace=tmp_path, thread_id="t")
    await again.close()

    assert again.thread_id == "t"


async def test_a_session_is_closed_when_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_session(workspace=tmp_path, thread_id="t"):
            raise ZeroDivisionError

    await (await open_session(workspace=tmp_path, thread_id="t")).close()


async def test_a_session_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        async with open_session(workspace=tmp_path / "none"):
            pass


def test_the_name_is_there_before_anything_behind_it_is_loaded() -> None:
    code, printed = program(
        "import sys; from graph_agent import open_session; print([m for m in sys.modules if 'graph_agent' in m])",
        ROOT,
        {},
    )

    assert (code, printed) == (0, "['graph_agent']\n")
    assert graph_agent.open_session.__doc__


def test_every_package_that_is_installed_shows_its_types() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []
