"""Where commands run, compared with what real bash says: random changes of folder, some of which fail."""

import os
import random
import subprocess
from os.path import normpath
from pathlib import Path

import pytest

from policy.shell.shell_text import parse_shell
from tools.shell_ops.bash_parser import parse_bash

_MOVES = (
    "cd a", "cd b", "cd ..", "cd ./a/b", "cd -", "cd -P b", "cd -- a", "cd ''", "cd .", "cd", "cd {root}/b",
    "pushd a", "pushd b", "pushd", "popd", "popd", "builtin cd a", "command cd b", "true", "dirs",
)  # fmt: skip
_FAILS = ("cd n", "cd a/n", "pushd n", "cd -P n", "false", "cd a b", "pushd +9", "popd +9", "cd -Z")
_JOINS = ("; ", " && ", " || ", "\n", "; ", " && ")
_FORMS = (
    "({})", "{{ {}; }}", "! {}", "if {}; then HERE {n}; else HERE {m}; fi", "{} | HERE {n}", "{} & wait", "time {}",
    "while {}; do HERE {n}; break; done", "HERE {n} | ({})",
)  # fmt: skip


class _Generator:
    def __init__(self, seed: int, root: Path) -> None:
        self._chance, self._root, self._count = random.Random(seed), root, 0

    def here(self) -> str:
        self._count += 1
        return f"HERE {self._count}"

    def text(self, depth: int = 0, *, moves: tuple[str, ...] = _MOVES + _FAILS) -> str:
        """A list of commands with `HERE` between them."""
        found = ""
        for _ in range(self._chance.randint(1, 4)):
            part = self._chance.choice(moves).replace("{root}", str(self._root))
            if depth < 2 and self._chance.random() < 0.3:
                form, inner = self._chance.choice(_FORMS), self.text(depth + 1, moves=moves)
                numbers = {name: self.here().split()[1] for name in "nm"}
                part = form.format(inner.rstrip("\n; "), **numbers)
            found += part + self._chance.choice(_JOINS) + self.here() + self._chance.choice(("; ", "\n", " && "))
        return found.rstrip("\n;& ")


def _folders_in_bash(text: str, root: Path) -> list[tuple[str, str]]:
    """For each `HERE` that is run its number and its folder."""
    log = root.parent / "log"
    log.write_text("")
    subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", f"{text}\nwait"],
        cwd=root,
        env={"PATH": f"{root.parent}/bin:/usr/bin:/bin", "HOME": str(root / "a"), "PWD": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    return [
        (number, folder) for number, _, folder in (line.partition(" ") for line in log.read_text().splitlines())
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree in which every path of `a` and `b` exists, as far as a shell writes it down."""
    place = Path(os.path.realpath(tmp_path)) / "root"
    for name in ("a", "b"):
        (place / name).mkdir(parents=True)
    for name, other in ("aa", "ab", "ba", "bb"):
        (place / name / other).symlink_to(f"../{other}")
    program = place.parent / "bin/HERE"
    program.parent.mkdir()
    program.write_text(f'#!/bin/bash\nprintf "%s %s\\n" "$1" "$PWD" >> {place.parent}/log\n')
    program.chmod(0o755)
    return place


def _absolute(folder: str, root: Path, *, follows_links: bool) -> str:
    """As bash names it, or where it is: after `cd -P` bash names the latter, which has no other spelling here."""
    path = root / folder.replace("~", str(root / "a"), 1)
    return os.path.realpath(path) if follows_links else normpath(path)


def _wrong_folders(root: Path, seeds: range) -> tuple[list[str], int]:
    wrong: list[str] = []
    compared = 0
    for seed in seeds:
        text = _Generator(seed, root).text()
        parsed = parse_shell(text, parse_bash)
        if not parsed.is_parsed:
            continue  # It is asked about, wherever its commands run.
        folders = {one.words[-1]: one.folders for one in parsed.commands if "HERE" in one.words}
        for number, folder in _folders_in_bash(text, root):
            possible = folders[number]
            compared += None not in possible
            foreseen = {
                _absolute(one or "", root, follows_links=follows)
                for one in possible
                for follows in ((False, True) if "cd -P" in text else (False,))
            }
            if None not in possible and folder not in foreseen:
                wrong.append(f"{seed} {text!r}: HERE {number} runs in {folder}, not in {possible}")
    return wrong, compared


@pytest.mark.slow
def test_bash_runs_every_command_in_a_folder_that_was_foreseen(root: Path) -> None:
    wrong, compared = _wrong_folders(root, range(120))

    assert wrong == []
    assert compared > 200


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_bash_runs_thousands_of_commands_in_folders_that_were_foreseen(root: Path) -> None:
    start = random.randrange(1 << 32)

    wrong, compared = _wrong_folders(root, range(start, start + 3_000))

    assert wrong == []
    assert compared > 5_000


_SUCCEED = (
    "cd a",
    "cd b",
    "cd ./a/b",
    "cd .",
    "cd",
    "cd -- b",
    "pushd a",
    "pushd b",
    "true",
    "f",
    "g",
    "(cd b; g)",
)


@pytest.mark.slow
def test_the_folder_of_a_command_also_in_a_function_is_the_one_after_changes_that_succeed(root: Path) -> None:
    wrong: list[str] = []
    compared = 0
    for seed in range(60):
        generator = _Generator(seed, root)
        bodies = [generator.text(2, moves=_SUCCEED[:9]).replace("||", "&&") for _ in "fg"]
        end = generator.text(2, moves=_SUCCEED).replace("||", "&&")
        text = f"f() {{ {bodies[0]}; }}\ng() {{ {bodies[1]}; }}\n{end}"
        places: dict[str, set[str]] = {}
        for one in parse_shell(text, parse_bash).runs:
            if one.words[0] == "HERE":
                places.setdefault(one.words[1], set()).add(_absolute(one.folder, root, follows_links=False))
        for number, folder in _folders_in_bash(text, root):
            compared += 1
            if folder not in places.get(number, set()):
                wrong.append(f"{text!r}: HERE {number} runs in {folder}, not in {places.get(number)}")

    assert wrong == []
    assert compared > 150
