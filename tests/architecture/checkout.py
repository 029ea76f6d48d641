"""Reads the files of this checkout for the tests of its shape. Knows no rule."""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

__all__ = [
    "CODE",
    "ROOT",
    "Comment",
    "Module",
    "Source",
    "code_modules",
    "expect_none",
    "modules_under",
    "text_files",
]

ROOT = Path(__file__).resolve().parents[2]

CODE = ("graph_agent", "tools", "policy")
"""The packages that are installed."""

_TEXTS = (*CODE, "tests", "docs", ".ci")
_SUFFIXES = frozenset((".py", ".md", ".toml", ".txt", ".json", ".jsonl", ".yaml", ".yml", ".sh", ""))


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of a module."""

    line: int
    text: str
    """From the `#` on."""


@dataclass(frozen=True)
class Source:
    """The text of a Python file, and what it says about itself."""

    path: str
    """Relative to the top of the checkout, with forward slashes."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return ast.parse(self.text)

    @cached_property
    def comments(self) -> list[Comment]:
        """All comments, in order; text inside strings is none."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [Comment(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.text.splitlines())


@dataclass(frozen=True)
class Module(Source):
    """A Python file with the name it is imported by."""

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.path.endswith("/__init__.py")

    @property
    def name(self) -> str:
        """Dotted name."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def code_modules() -> list[Module]:
    """Every module that is installed."""
    return [module for folder in CODE for module in modules_under(folder)]


@cache
def modules_under(folder: str) -> list[Module]:
    """Every Python file under a folder of the checkout, by path."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [Module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def text_files() -> Iterator[tuple[str, str]]:
    """Path and text of every file that belongs to the project."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    deep = [path for folder in _TEXTS for path in sorted((ROOT / folder).rglob("*"))]
    for path in [*top, *deep]:
        if path.is_file() and path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")


def expect_none(findings: Iterable[str]) -> None:
    """Fail with every finding on a line of its own, where there is one."""
    found = list(findings)
    assert not found, "\n".join(["found:", *found])
