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


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return table


@pytest.mark.parametrize(
    "name", ["requirements.txt", *(f"requirements-{name}.txt" for name in ("dev", "server", "local", "bench"))]
)
def test_a_lock_holds_nothing_but_pins_with_hashes(name: str) -> None:
    assert odd_lines(read(name)) == []


def test_the_locks_meet_what_the_project_asks_for() -> None:
    wanted = project()

    missing = [
        *unmet(wanted["dependencies"], pins(read("requirements.txt"))),
        *unmet(wanted["optional-dependencies"]["dev"], pins(read("requirements-dev.txt"))),
        *unmet(wanted["optional-dependencies"]["server"], pins(read("requirements-server.txt"))),
        *unmet(wanted["optional-dependencies"]["local"], pins(read("requirements-local.txt"))),
        *unmet(wanted["optional-dependencies"]["bench"], pins(read("requirements-bench.txt"))),
    ]

    assert missing == [], "run `make lock`"


def test_users_get_the_versions_that_were_tested() -> None:
    tested = pins(read("requirements-dev.txt"))

    assert {name: tested.get(name) for name in pins(read("requirements.txt"))} == pins(read("requirements.txt"))


@pytest.mark.parametrize("extra", ["server", "local", "bench"])
def test_an_extra_changes_no_tested_version(extra: str) -> None:
    tested, locked = pins(read("requirements-dev.txt")), pins(read(f"requirements-{extra}.txt"))

    assert {name: locked[name] for name in tested.keys() & locked.keys()} == {
        name: tested[name] for name in tested.keys() & locked.keys()
    }


def test_what_does_not_belong_in_a_lock_is_noticed() -> None:
    hashed = "    --hash=sha256:" + "0" * 64
    lock = f"--index-url https://example.test\n# why\none==1.0 \\\n{hashed}\ntwo==2.0\n-e ./three\n"

    assert odd_lines(lock) == ["--index-url https://example.test", "two==2.0", "-e ./three"]


def test_a_requirement_that_the_lock_does_not_meet_is_noticed() -> None:
    locked = {"one": "1.0", "two-parts": "2.0"}

    assert unmet(["one>=1", "Two_Parts<2", "three"], locked) == ["Two_Parts<2", "three"]
