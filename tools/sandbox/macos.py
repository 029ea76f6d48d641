"""The sandbox of macOS: a profile for `sandbox-exec`, generated from the same rules as the other forms.

Its effect has not been tested, only its text: read the profile before you rely on it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.sandbox.protected_paths import WATCHED_NAMES, ProtectedNames, SandboxRules, protected_mounts

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
    closed = [*_protected(rules.writable, rules.names), *(f"(subpath {_text(path)})" for path in rules.protected)]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        _rule("allow file-write*", (f"(subpath {_text(path)})" for path in (*rules.writable, private))),
        _rule("allow file-write*", (f"(literal {_text(Path(name))})" for name in _DEVICES)),
        _rule("deny file-write*", closed),
        # Otherwise a folder above could be moved away, and another one put in its place.
        _rule("deny file-write-unlink", (f"(literal {_text(path)})" for path in _folders_above(rules))),
        _rule("deny file-read* file-write*", (f"(subpath {_text(path)})" for path in rules.hidden)),
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


def _protected(roots: Sequence[Path], names: ProtectedNames) -> Iterator[str]:
    for root in roots:
        for name in (*names.folders, *names.files, *names.removed):
            if name != ".git":
                yield f"(subpath {_text(root / name)})"
        for mount in protected_mounts(root, names):
            if mount.kind != "write":
                yield f"(subpath {_text(mount.path)})"
        # What a repository runs, also one that is created later.
        folder = _SPECIAL.sub(r"\\\g<0>", str(root)).replace('"', ".")
        yield f'(regex #"^{folder}/(.*/)?\\.git/({_GIT})(/|$)")'


def _folders_above(rules: SandboxRules) -> Iterator[Path]:
    for path in rules.protected:
        yield from (
            folder for folder in path.parents if any(folder.is_relative_to(root) for root in rules.writable)
        )
    yield from (root / ".git" for root in rules.writable)


def _text(value: "Path | str") -> str:
    """A text of the profile's language."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
