import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from graph_agent.cli.exit_codes import MEANINGS, ExitCode
from graph_agent.cli.options import EXAMPLES, describe_exit_codes, find_examples
from tests.architecture.checkout import ROOT
from tests.fakes.typed_words import PROGRAM, understood


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    if not inner or not path:
        yield " ".join(path)
    for name, one in inner.items():
        yield from _paths(one, (*path, name))


def test_every_command_has_examples_and_every_example_its_command() -> None:
    assert sorted(EXAMPLES) == sorted(_paths(PROGRAM))


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path])
def test_an_example_can_be_typed_as_it_stands(path: str) -> None:
    for line in EXAMPLES[path]:
        program, *words = shlex.split(re.split(r" [<>] ", line)[0])

        context = understood(words)

        assert (program, context.command_path) == ("graph-agent", f"graph-agent {path}")


def test_a_command_without_examples_has_none_to_show() -> None:
    assert (find_examples("graph-agent"), find_examples("program unknown")) == (EXAMPLES[""], ())


def test_every_exit_code_has_its_meaning_in_help_and_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert set(MEANINGS) == set(ExitCode)
    assert [code for code in ExitCode if f"{code.value} {MEANINGS[code]}" not in describe_exit_codes()] == []
    assert [code.value for code in ExitCode if not re.search(rf"\b{code.value} [a-zCS]", readme)] == []
