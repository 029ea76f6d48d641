import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.checkout import ROOT

PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) \\")
HASH = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?")


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(found["name"]): found["version"] for found in PIN.finditer(lock)}


def odd_lines(lock: str) -> list[str]:
    """Lines that are no pin, no hash, no comment: an address, an option, a path, a pin without a hash."""
    return [
        line
        for line in lock.splitlines()
        if not (PIN.fullmatch(line) or HASH.fullmatch(line) or line.lstrip().startswith("#"))
    ]


def unmet(requirements: list[str], locked: dict[str, str]) -> list[str]:
    return [text for text in requirements if not _is_met(Requirement(text), locked)]


def _is_met(requirement: Requirement, locked: dict[str, str]) -> bool:
    version = locked.get(canonicalize_name(requirement.name))
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def read_lock(extra: str) -> str:
    """The lock of an extra, or of the program itself."""
    name = f"requirements-{extra}.txt" if extra else "requirements.txt"
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("extra", ["", "dev", "server", "local", "web", "bench"])
def test_a_lock_holds_nothing_but_pins_with_hashes(extra: str) -> None:
    assert odd_lines(read_lock(extra)) == []


def test_the_locks_meet_what_the_project_asks_for() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}

    missing = [
        line
        for extra in ("", "dev", "server", "local", "web", "bench")
        for line in unmet(wanted[extra], pins(read_lock(extra)))
    ]

    assert missing == [], "run `make lock`"


@pytest.mark.parametrize("extra", ["", "server", "local", "web", "bench"])
def test_users_get_the_versions_that_were_tested(extra: str) -> None:
    tested, locked = pins(read_lock("dev")), pins(read_lock(extra))
    common = tested.keys() & locked.keys()

    assert {name: locked[name] for name in common} == {name: tested[name] for name in common}
    assert extra or locked.keys() <= tested.keys()


def test_what_does_not_belong_in_a_lock_is_noticed() -> None:
    hashed = "    --hash=sha256:" + "0" * 64
    lock = f"--index-url https://example.test\n# why\none==1.0 \\\n{hashed}\ntwo==2.0\n-e ./three\n"

    assert odd_lines(lock) == ["--index-url https://example.test", "two==2.0", "-e ./three"]


def test_a_requirement_that_the_lock_does_not_meet_is_noticed() -> None:
    locked = {"one": "1.0", "two-parts": "2.0"}

    assert unmet(["one>=1", "Two_Parts<2", "three"], locked) == ["Two_Parts<2", "three"]
