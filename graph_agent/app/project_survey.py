"""Draft the AGENTS.md of a repository from its own files: what it is, its commands, its layout."""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.chat_input import read_tree
from graph_agent.app.project_trust import read_inside
from graph_agent.errors import StorageError, UsageError
from tools.files import replace_file, snapshot_at
from tools.paths import PathRefused

__all__ = ["Draft", "draft_instructions", "request_for_model", "write_instructions"]

_NAME = "AGENTS.md"
_CI = (".github/workflows", ".gitlab-ci.yml")
_README = ("README.md", "README.rst", "README.txt", "README")
_MAX_INTRODUCTION = 600
_MAX_COMMANDS = 4
"""Of one purpose."""
_MAX_CI_COMMANDS = 12
_MAX_FOLDERS = 20
_COMMAND_CHARS = 120

_PURPOSES: Mapping[str, tuple[str, ...]] = {
    "Set up": ("install", "setup", "bootstrap", "deps"),
    "Build": ("build", "compile"),
    "Test": ("test", "tests", "unittest"),
    "Check": ("check", "lint", "typecheck", "types", "vet", "clippy"),
    "Format": ("format", "fmt"),
    "Run": ("run", "start", "serve", "dev"),
}
"""Each kind of command, with the names that targets and scripts of this kind usually have."""

_Command = tuple[str, str]
"""Its purpose and its text."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A text for AGENTS.md."""

    text: str
    sources: tuple[str, ...]
    """The files it was made from."""

    def report(self, path: Path) -> str:
        """The message after it was written to a path."""
        sources = ", ".join(self.sources) or "the names of the folders"
        return f"Wrote {path} from {sources}. Read and correct it; the next chat asks whether to trust it."


class _Files:
    """The files of a repository, each read up to a limit; one that is outside it or unreadable counts as empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names = [*read_tree(folder), *_ci_files(folder)]
        self.sources: list[str] = []

    def text(self, name: str) -> str:
        """The text of a file; empty if it does not exist or cannot be read."""
        if name not in self.names:
            return ""
        try:
            text = read_inside(self._folder, name).decode(errors="replace").replace("\r\n", "\n")
        except PathRefused:
            return ""
        if text:
            self.sources.append(name)
        return text

    def has(self, name: str) -> bool:
        """Whether there is such a file or, with a slash at its end, such a folder."""
        return name in self.names


def draft_instructions(workspace: Path) -> Draft:
    """What the repository's files say, without a model and without running anything."""
    files = _Files(workspace.resolve())
    title, introduction = _introduction(files)
    commands = list(dict.fromkeys(command for read in _READERS for command in read(files)))
    parts = [f"# {title or workspace.resolve().name}", introduction]
    if lines := [*_command_lines(commands), *_ci_lines(files)]:
        parts.append("\n".join(["## Commands", "", *lines]))
    if lines := _layout_lines(files.names):
        parts.append("\n".join(["## Layout", "", *lines]))
    return Draft("\n\n".join(part for part in parts if part) + "\n", tuple(dict.fromkeys(files.sources)))


def write_instructions(workspace: Path, text: str, *, replaces: bool = False) -> Path:
    """Write the AGENTS.md of a workspace.

    Raises:
        UsageError: there is one, and it is not to be replaced.
        StorageError: it cannot be written.
    """
    path = workspace.resolve() / _NAME
    if os.path.lexists(path) and not replaces:
        raise UsageError(f"{path} exists and was not changed. Replace it with: graph-agent init --yes")
    try:
        replace_file(snapshot_at(path, workspace.resolve()), text.encode(), temp_name=f".{_NAME}.new")
    except (OSError, PathRefused) as error:
        raise StorageError(f"{path} cannot be written: {error}") from error
    return path


def request_for_model(workspace: Path) -> str:
    """The message that asks the model to write AGENTS.md, or to correct the one that exists."""
    task = (
        f"Read the existing {_NAME} first. Keep what people wrote in it, correct what is wrong and add what is "
        "missing, each with edit_file; say what you changed and why."
        if os.path.lexists(workspace / _NAME)
        else f"Write the file {_NAME} at the top of the workspace with write_file."
    )
    return f"{task}\n\n{_REQUEST}"


_REQUEST = """\
AGENTS.md says how coding agents should work in this repository. Look before you write: the README, the build files
(pyproject.toml, package.json, Makefile, Cargo.toml, go.mod and similar), the CI configuration, the main folders and
some typical source and test files. Then write, in at most 60 lines of Markdown:

- what the project is, in two sentences;
- the commands that set up, build, test (also one single test), check and format it, as they are defined here;
- the layout: which folder holds what, and where a change of each kind belongs;
- conventions that the code really follows and that a newcomer would get wrong.

State only what you found in the files. Leave out general advice, lists of all files and everything that is obvious
from the code."""


def _introduction(files: _Files) -> tuple[str, str]:
    """The title of the README and its first paragraph of prose."""
    readme = next((name for name in _README if files.has(name)), "")
    lines = [line.strip() for line in files.text(readme).split("\n")] if readme else []
    title = next((line.lstrip("# ") for line in lines if re.match(r"#\s+\S", line)), "")
    paragraph: list[str] = []
    for line in lines:
        is_prose = bool(line) and line[0] not in "#<![|`=-*+>~:." and line != title
        if is_prose:
            paragraph.append(line)
        elif paragraph:
            break
    return title, " ".join(paragraph)[:_MAX_INTRODUCTION]


def _command_lines(commands: list[_Command]) -> Iterator[str]:
    for purpose in _PURPOSES:
        found = [f"`{text}`" for kind, text in commands if kind == purpose][:_MAX_COMMANDS]
        if found:
            yield f"- {purpose}: {', '.join(found)}"


def _purpose_of(name: str) -> str:
    """What a target or script is for, by the first word of its name; empty if that is unknown."""
    word = re.split(r"[-_:.]", name.lower())[0]
    return next((purpose for purpose, words in _PURPOSES.items() if word in words), "")


def _from_makefile(files: _Files) -> Iterator[_Command]:
    for name in ("Makefile", "makefile", "GNUmakefile", "justfile"):
        program = "just" if name == "justfile" else "make"
        for target in re.findall(r"^([A-Za-z][\w.-]*)[^\n:=]*:(?![:=])", files.text(name), re.MULTILINE):
            if purpose := _purpose_of(target):
                yield purpose, f"{program} {target}"


def _from_package_json(files: _Files) -> Iterator[_Command]:
    try:
        scripts = json.loads(files.text("package.json") or "{}").get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    program = next((program for lock, program in locks.items() if files.has(lock)), "npm")
    if files.has("package.json"):
        yield "Set up", f"{program} install"
    for name, script in scripts.items() if isinstance(scripts, dict) else ():
        is_defined = re.fullmatch(r"[\w:.-]+", name) and "no test specified" not in str(script)
        if is_defined and (purpose := _purpose_of(name)):
            yield purpose, f"{program} run {name}"


def _from_python(files: _Files) -> Iterator[_Command]:
    project = _toml(files, "pyproject.toml")
    if not files.has("pyproject.toml") and not files.has("setup.py"):
        return
    runners = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
    runner = next((runner for lock, runner in runners.items() if files.has(lock)), "")
    set_up = {"uv run ": "uv sync", "poetry run ": "poetry install", "pdm run ": "pdm install"}
    yield "Set up", set_up.get(runner, "pip install -e .")
    tools = project.get("tool")
    tools = tools if isinstance(tools, dict) else {}
    if "pytest" in tools or files.has("pytest.ini") or files.has("tests/conftest.py"):
        yield "Test", f"{runner}pytest"
    yield from (("Test", name) for name, file in (("tox", "tox.ini"), ("nox", "noxfile.py")) if files.has(file))
    if "ruff" in tools or files.has("ruff.toml"):
        yield from (("Check", f"{runner}ruff check ."), ("Format", f"{runner}ruff format ."))
    if "black" in tools:
        yield "Format", f"{runner}black ."
    if "mypy" in tools or files.has("mypy.ini"):
        yield "Check", f"{runner}mypy ."
    if "pyright" in tools or files.has("pyrightconfig.json"):
        yield "Check", f"{runner}pyright"


def _from_rust(files: _Files) -> Iterator[_Command]:
    if files.text("Cargo.toml"):
        yield from (("Build", "cargo build"), ("Test", "cargo test"))
        yield from (("Check", "cargo clippy"), ("Format", "cargo fmt"))


def _from_go(files: _Files) -> Iterator[_Command]:
    if files.text("go.mod"):
        yield from (("Build", "go build ./..."), ("Test", "go test ./..."))
        yield from (("Check", "go vet ./..."), ("Format", "gofmt -w ."))


_READERS: tuple[Callable[[_Files], Iterator[_Command]], ...] = (
    _from_makefile,
    _from_package_json,
    _from_python,
    _from_rust,
    _from_go,
)


def _toml(files: _Files, name: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(files.text(name))
    except (ValueError, RecursionError):
        return {}


def _ci_lines(files: _Files) -> Iterator[str]:
    """What CI runs, from the files of GitHub and GitLab."""
    for name in files.names:
        if name.startswith(_CI):
            steps = [
                step for step in _ci_steps(files.text(name)) if len(step) <= _COMMAND_CHARS and "`" not in step
            ]
            if found := [f"`{step}`" for step in dict.fromkeys(steps)][:_MAX_CI_COMMANDS]:
                yield f"- CI ({name}) runs: {', '.join(found)}"


def _ci_files(folder: Path) -> list[str]:
    """The names of what defines CI, which are hidden files."""
    workflows, single = (folder / name for name in _CI)
    try:
        names = [f"{_CI[0]}/{one.name}" for one in workflows.iterdir() if one.suffix in (".yml", ".yaml")]
    except OSError:
        names = []
    return [*sorted(names), *([_CI[1]] if single.is_file() else [])]


def _ci_steps(text: str) -> Iterator[str]:
    """The commands after `run:`, on its line or indented below, and those listed below `script:`."""
    indent = -1
    for line in text.split("\n"):
        step = line.strip()
        depth = len(line) - len(line.lstrip())
        if indent >= 0 and step and depth <= indent and not (step.startswith("- ") and depth == indent):
            indent = -1
        if found := re.match(r"(\s*(?:- )?)(?:run|script):\s*(.*)$", line):
            value = found[2].strip()
            indent = len(found[1]) if value in ("", "|", ">", "|-", ">-") else -1
            if indent < 0:
                yield value.strip("\"'")
        elif indent >= 0 and step and not step.startswith("#"):
            yield step.removeprefix("- ").strip("\"'")


def _layout_lines(names: list[str]) -> list[str]:
    """Each folder at the top with how many files are below it, and of which kind most of them are."""
    folders: dict[str, Counter[str]] = {}
    for name in names:
        top, slash, _ = name.partition("/")
        if slash and not name.endswith("/") and top[0] != ".":
            folders.setdefault(top, Counter())[Path(name).suffix] += 1
    lines = []
    for top, endings in sorted(folders.items())[:_MAX_FOLDERS]:
        count = endings.total()
        ending = endings.most_common(1)[0][0]
        kind = f", mostly {ending}" if ending and count > 1 else ""
        lines.append(f"- `{top}/`: {count} file{'s' if count != 1 else ''}{kind}")
    return lines
