"""The sandbox of macOS: a profile for `sandbox-exec`, generated from the same rules as the other forms.

Its effect has not been tested, only its text: read the profile before you rely on it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.sandbox.protected_paths import WATCHED_NAMES, SandboxRules, find_closed_places

__all__ = ["PROGRAM", "profile"]

PROGRAM = "/usr/bin/sandbox-exec"

_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")
_GIT = "|".join(name.replace(".", r"\.") for name in WATCHED_NAMES)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/dtracehelper")


def profile(rules: SandboxRules, private: Path) -> str:
    """The profile in the system's own language, where the last rule that matches an operation decides.

    Args:
        rules: what the sandbox allows.
        private: the folder for temporary files.
    """
    places = find_closed_places(rules)
    read_only = [mount.path for mount in places.protected if mount.kind == "read"]
    read_only += [mount.path for mount in places.denied if mount.kind == "locked"]
    hidden = [*rules.hidden, *(mount.path for mount in places.denied if mount.kind == "unreadable")]
    held = [mount.path for mount in places.denied if mount.kind == "held"]
    closed = [*_absent_names(rules), *map(_subpath, (*read_only, *rules.protected))]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        _rule("allow file-write*", map(_subpath, (*rules.writable, private))),
        _rule("allow file-write*", (f"(literal {_text(Path(name))})" for name in _DEVICES)),
        _rule("deny file-write*", closed),
        # Otherwise a folder above could be moved away, and another one put in its place.
        _rule("deny file-write-unlink", (f"(literal {_text(path)})" for path in _folders_above(rules, held))),
        _rule("deny file-read* file-write*", map(_subpath, hidden)),
        "(deny file-write-setugid)",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        *(() if rules.network else ("(deny network*)", "(allow network* (local unix-socket))")),
    ]
    return "\n".join(filter(None, lines))


def _rule(head: str, filters: Iterable[str]) -> str:
    """A rule for any of the filters; empty without one, as the rule would then hold for everything."""
    named = " ".join(dict.fromkeys(filters))
    return f"({head} {named})" if named else ""


def _absent_names(rules: SandboxRules) -> Iterator[str]:
    """What must not be created either, where it does not exist."""
    names = rules.names
    for root in rules.writable:
        for name in (*names.folders, *names.files, *names.removed):
            if name != ".git":
                yield _subpath(root / name)
        # What a repository runs, also one that is created later.
        folder = _SPECIAL.sub(r"\\\g<0>", str(root)).replace('"', ".")
        yield f'(regex #"^{folder}/(.*/)?\\.git/({_GIT})(/|$)")'
    for closed in rules.closed:
        if closed.access == "write" and closed.names in ((), ("**",)):
            yield _subpath(Path(closed.folder))


def _folders_above(rules: SandboxRules, held: Iterable[Path]) -> Iterator[Path]:
    for path in rules.protected:
        yield from (
            folder for folder in path.parents if any(folder.is_relative_to(root) for root in rules.writable)
        )
    yield from held
    yield from (root / ".git" for root in rules.writable)


def _subpath(path: Path) -> str:
    return f"(subpath {_text(path)})"


def _text(value: "Path | str") -> str:
    """A text of the profile's language."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
