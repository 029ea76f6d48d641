import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.checkout import ROOT, code_modules

MODEL_LIBRARIES = ("langgraph", "langchain_core", "langchain_openai", "openai", "tiktoken", "numpy")

HEAVY = (
    "graph_agent.acp",
    "graph_agent.app",
    "graph_agent.durable",
    "graph_agent.graph",
    "graph_agent.model",
    "graph_agent.session",
    "graph_agent.storage",
    "graph_agent.worker",
)
"""Floors that may load the model library; nothing else does."""

LOAD = """
import importlib, json, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
with open(sys.argv[1], "w") as file:
    json.dump(sorted(sys.modules), file)
"""


@dataclass(frozen=True)
class Loaded:
    """What importing modules does in an empty home folder that is also the current one."""

    printed: str
    abandoned: list[str]
    modules: set[str]


def load(names: list[str], scratch: Path, path: Path = ROOT) -> Loaded:
    home, report = scratch / "home", scratch / "modules.json"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(report), *names],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    left = sorted(str(item.relative_to(home)) for item in home.rglob("*"))
    return Loaded(done.stdout, left, set(json.loads(report.read_text())))


def test_importing_everything_prints_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    loaded = load([module.name for module in code_modules()], tmp_path)

    assert (loaded.printed, loaded.abandoned) == ("", [])


def test_the_light_packages_load_no_model_library(tmp_path: Path) -> None:
    names = [module.name for module in code_modules()]
    light = [name for name in names if ".".join(name.split(".")[:2]) not in HEAVY]

    loaded = load(light, tmp_path)

    assert loaded.modules & set(MODEL_LIBRARIES) == set()


@pytest.mark.parametrize(
    ("text", "printed", "abandoned"),
    [
        ("print('hello')", "hello\n", []),
        ("import sys\nsys.stderr.write('careful')", "careful", []),
        ("from pathlib import Path\n(Path.home() / 'made').touch()", "", ["made"]),
    ],
)
def test_a_module_that_prints_or_writes_is_noticed(
    tmp_path: Path, text: str, printed: str, abandoned: list[str]
) -> None:
    (tmp_path / "loud.py").write_text(text)

    loaded = load(["loud"], tmp_path, tmp_path)

    assert (loaded.printed, loaded.abandoned) == (printed, abandoned)
    assert "loud" in loaded.modules


def test_a_session_is_opened_without_the_models_that_answer_within_this_process(tmp_path: Path) -> None:
    loaded = load(["graph_agent.app.opening"], tmp_path)

    # Which model it will be the settings say; patterns of two languages are not compiled for an endpoint.
    assert not [
        name for name in loaded.modules if name.startswith(("graph_agent.model.offline", "graph_agent.model.local"))
    ]


def test_only_a_database_on_a_server_loads_its_library(tmp_path: Path) -> None:
    names = [module.name for module in code_modules() if not module.name.startswith("graph_agent.storage.postgres")]

    assert "psycopg" not in load(names, tmp_path).modules


def test_the_prompt_waits_for_nothing_but_the_command_line(tmp_path: Path) -> None:
    loaded = load(
        ["graph_agent.cli.main", "graph_agent.cli.commands.session", "graph_agent.cli.chat.start"], tmp_path
    )

    floors = {".".join(name.split(".")[:2]) for name in loaded.modules if name.startswith("graph_agent.")}
    assert floors == {"graph_agent.cli", "graph_agent.config", "graph_agent.errors", "graph_agent.wording"}
    assert {name for name in loaded.modules if name.startswith("tools.")} <= {"tools.programs"}
    assert loaded.modules & {"policy", "pydantic", "pathspec", "httpx", *MODEL_LIBRARIES} == set()


def test_a_command_is_completed_without_what_reads_the_database(tmp_path: Path) -> None:
    loaded = load(["graph_agent.cli.main", "graph_agent.cli.completion"], tmp_path)

    assert loaded.modules & {"sqlite3", "pydantic", "graph_agent.inspect", "graph_agent.app.reader"} == set()
    assert len([name for name in loaded.modules if name.startswith("graph_agent.")]) < 30


def test_an_id_is_completed_with_little_more_than_the_database(tmp_path: Path) -> None:
    reading = ["graph_agent.app.reader", "graph_agent.storage.sqlite.read_connection"]

    loaded = load(["graph_agent.__main__", "graph_agent.cli.completion", *reading], tmp_path).modules

    slow = {"typer", "rich", "dataclasses", "inspect", "asyncio", "pydantic", "graph_agent.inspect"}
    assert loaded & slow == set()
    assert len([name for name in loaded if name.startswith("graph_agent.")]) < 20


def test_a_request_is_encoded_without_the_model_library(tmp_path: Path) -> None:
    loaded = load(["graph_agent.model.openai.request_body"], tmp_path)

    assert loaded.modules & {"httpx", *MODEL_LIBRARIES} == set()


def test_what_a_run_loads_before_its_first_request_knows_neither_graph_nor_model_library(tmp_path: Path) -> None:
    loaded = load(["graph_agent.cli.main", "graph_agent.cli.headless.run", "graph_agent.app.opening"], tmp_path)

    assert loaded.modules & {"httpx", "httpx2", "langsmith", "mcp", *MODEL_LIBRARIES} == set()
    assert len(loaded.modules) < 700


def test_a_run_loads_what_shows_calls_only_once_there_are_some(tmp_path: Path) -> None:
    loaded = load(["graph_agent.cli.main", "graph_agent.cli.headless.run"], tmp_path)

    assert loaded.modules & {"sqlite3", "graph_agent.inspect", "graph_agent.app.approvals"} == set()
    assert len([name for name in loaded.modules if name.startswith("graph_agent.")]) < 40


COMMAND_LINE = {"typer", "prompt_toolkit", "graph_agent.cli", "graph_agent.app", "graph_agent.session"}
DATABASE = {"sqlite3", "aiosqlite", "graph_agent.storage"}
LIGHT_FLOORS = {f"graph_agent.{name}" for name in ("calls", "config", "errors", "events", "ports")}


def floors_of(modules: set[str]) -> set[str]:
    """Of the agent, without its package itself."""
    return {".".join(name.split(".")[:2]) for name in modules if name.startswith("graph_agent.")}


@pytest.mark.parametrize(
    ("package", "floors", "absent"),
    [
        ("policy", set(), {"pydantic", "httpx", "tools", *DATABASE, *MODEL_LIBRARIES}),
        ("tools", set(), {*DATABASE, *MODEL_LIBRARIES}),
        (
            "graph_agent.toolbox.policy_check",
            LIGHT_FLOORS | {"graph_agent.toolbox"},
            {"httpx", *DATABASE, *MODEL_LIBRARIES},
        ),
        (
            "graph_agent.durable",
            (LIGHT_FLOORS - {"graph_agent.events"}) | {"graph_agent.durable", "graph_agent.storage"},
            {"tools", "policy", "openai", "langchain_openai", "tiktoken", "numpy"},
        ),
    ],
)
def test_what_is_usable_alone_loads_nothing_of_the_rest_even_when_all_of_it_is_used(
    tmp_path: Path, package: str, floors: set[str], absent: set[str]
) -> None:
    names = [module.name for module in code_modules() if f"{module.name}.".startswith(f"{package}.")]
    loaded = load(names, tmp_path).modules

    assert len(names) > 5 or package.endswith("policy_check")
    assert floors_of(loaded) == floors
    assert loaded & (absent | COMMAND_LINE) == set()


@pytest.mark.parametrize("name", ["tools", "policy", "graph_agent.durable"])
def test_importing_what_is_usable_alone_loads_no_library(tmp_path: Path, name: str) -> None:
    loaded = load([name], tmp_path).modules

    libraries = {"pydantic", "pathspec", "httpx", "sqlite3", "typer", "langchain", *MODEL_LIBRARIES}
    assert loaded & libraries == set()
    assert floors_of(loaded) <= {"graph_agent.durable", "graph_agent.errors"}
    assert len([one for one in loaded if one.partition(".")[0] in ("tools", "policy", "graph_agent")]) < 40


def test_commands_that_only_read_load_no_module_for_running_a_thread(tmp_path: Path) -> None:
    loaded = load(["graph_agent.cli.commands.threads", "graph_agent.cli.views.threads"], tmp_path)

    # Their dataclasses and protocols take longer to make than the reading itself.
    running = {"events", "ports.model", "ports.storage", "ports.time_travel", "ports.toolbox"}
    assert loaded.modules & {f"graph_agent.{name}" for name in running} == set()
