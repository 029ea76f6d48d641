"""Starts commands and servers in a sandbox: finds the backend that works here, and prepares each launch."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, assert_never

from tools.programs import exclude_folders, find_program, missing_reason
from tools.sandbox import landlock, macos
from tools.sandbox.landlock import landlock_abi
from tools.sandbox.placeholders import placeholders, remove_stale_placeholders, restore, watched_paths
from tools.sandbox.protected_paths import (
    Mount,
    SandboxRules,
    find_closed_places,
    folder_mounts,
    git_folder,
    is_folder,
    ordered_mounts,
    path_exists,
    private_folder,
    repository_mounts,
    stand_in_file,
)
from tools.sandbox.seccomp import bubblewrap_filter, is_known_machine, landlock_filter

__all__ = [
    "NAMESPACE_OPTIONS",
    "NO_LIMITS",
    "ResourceLimits",
    "Sandbox",
    "SandboxBackend",
    "SandboxLaunch",
    "SandboxUnavailable",
    "bubblewrap_arguments",
    "detect_backend",
]

_CACHES = (("GOCACHE", "go-build"), ("UV_CACHE_DIR", "uv"), ("npm_config_cache", "npm"))
"""Caches without which programs fail, and do not only get slower, as they cannot write them in the home folder."""


class SandboxBackend(NamedTuple):
    """What enforces a sandbox on this machine."""

    kind: Literal["bubblewrap", "landlock", "sandbox-exec", "none"]
    program: str = ""
    """Path of the program that makes it."""
    abi: int = 0
    """Version of Landlock."""
    why: str = ""
    """Why it is not a better one."""


class ResourceLimits(NamedTuple):
    """What a command and all its processes may use; None without limit."""

    memory: int | None = None
    """Bytes."""
    processes: int | None = None


NO_LIMITS = ResourceLimits()


class SandboxUnavailable(Exception):
    """There is no sandbox here, or it cannot be set up, and nothing may run without one; the message says why."""


@dataclass(frozen=True)
class SandboxLaunch:
    """How one program is started in the sandbox."""

    kind: Literal["bubblewrap", "landlock", "sandbox-exec"]
    prefix: tuple[str, ...]
    """Precedes the program and its arguments."""
    environment: Mapping[str, str]
    """Variables in addition to the program's own."""
    descriptors: tuple[int, ...] = ()
    """What the prefix reads, and must be passed on."""
    limits: ResourceLimits = NO_LIMITS
    restored: list[Path] = field(default_factory=list)
    """Known afterwards: protected names that the program changed, and that were restored."""
    placeholders: tuple[str, ...] = ()
    """Names that are absent, and that the program sees as empty placeholders while it runs."""

    @property
    def has_pid_namespace(self) -> bool:
        """Whether it has a process namespace, which ends with its first process and with the agent."""
        return self.kind == "bubblewrap"


class Sandbox:
    """The sandbox of one workspace.

    Args:
        rules: what it allows.
        is_required: whether nothing may run if there is no backend.
        look: finds the backend.
    """

    def __init__(
        self, rules: SandboxRules, *, is_required: bool = False, look: Callable[[], SandboxBackend] | None = None
    ) -> None:
        self.rules = rules
        self.is_required = is_required
        self._look = look or detect_backend
        exclude_folders(rules.writable)

    @property
    def backend(self) -> SandboxBackend:
        """What enforces it here. The first call in a process takes some milliseconds."""
        return self._look()

    @property
    def is_available(self) -> bool:
        """Whether there is a backend here."""
        return self.backend.kind != "none"

    @property
    def limits(self) -> ResourceLimits:
        """What each command may use."""
        return ResourceLimits(self.rules.memory, self.rules.processes)

    @property
    def restrictions(self) -> str:
        """What a command may do in it, in words."""
        network = "the network is open" if self.rules.network else "there is no network"
        more = f" and {len(self.rules.writable) - 1} more folders" if len(self.rules.writable) > 1 else ""
        closed = ", files that deny rules name are closed" if self.rules.closed else ""
        return f"files can be written in the workspace{more} and the temporary folder only{closed}, {network}"

    def closed_repository(self) -> Path | None:
        """The folder of the workspace's repository, if commands cannot write it, and so not commit."""
        rules = self.rules
        git = git_folder((rules.repository or rules.writable[0]) / ".git")
        if git is None or _is_in(git, rules.writable) or not self.is_available:
            return None
        opened = repository_mounts((rules.repository or rules.writable[0]) / ".git", rules.writable)
        is_open = self.backend.kind == "bubblewrap" and Mount(git, "write") in opened
        return None if is_open else git

    def unenforced_rules(self) -> tuple[tuple[str, str], ...]:
        """The deny rules about files that it cannot fully enforce at the moment, each with the reason."""
        gaps = list(find_closed_places(self.rules, with_names=False).gaps)
        for one in self.rules.closed:
            if one.access == "write" and one.names not in ((), ("**",)):
                gaps.append((one.rule, "new files that it matches can be created"))
            elif one.access == "write" and self.backend.kind == "landlock" and not path_exists(Path(one.folder)):
                gaps.append((one.rule, f"{one.folder} does not exist, and can be created"))
        return tuple(dict.fromkeys(gaps))

    def with_rules(self, rules: SandboxRules) -> "Sandbox":
        """The same sandbox with other rules."""
        return Sandbox(rules, is_required=self.is_required, look=self._look)

    @contextmanager
    def launch(
        self, name: str, *, is_lasting: bool = False, outlives: bool = False
    ) -> Iterator[SandboxLaunch | None]:
        """Prepare the start of a program; None if there is no backend here.

        Everything that was started with it must have ended before the block is left.

        Args:
            name: commands with the same name share their temporary files.
            is_lasting: it runs as long as the agent does. Absent names in its folders then get no placeholders,
                because these would be visible to everybody all the time.
            outlives: it continues when the agent ends.

        Raises:
            SandboxUnavailable: a sandbox is required and cannot be set up.
        """
        backend = self.backend
        if backend.kind == "none":
            if self.is_required:
                raise SandboxUnavailable(
                    f'{backend.why}. With the setting sandbox = "required" nothing runs without a sandbox'
                )
            yield None
            return
        try:
            private = private_folder(name)
        except OSError as error:
            raise SandboxUnavailable(f"its folder for temporary files cannot be made: {error}") from error
        match backend.kind:
            case "landlock":
                yield self._landlock_launch(private)
            case "sandbox-exec":
                prefix = (backend.program, "-p", macos.profile(self.rules, private), *self._limiting_words())
                yield SandboxLaunch("sandbox-exec", prefix, _environment(private), limits=self.limits)
            case "bubblewrap":
                with self._bubblewrap_launch(
                    backend.program, private, is_lasting=is_lasting, outlives=outlives
                ) as launch:
                    yield launch
            case _ as never:
                assert_never(never)

    def _limiting_words(self, *, has_own_count: bool = False) -> tuple[str, ...]:
        """Words before a program by which the kernel limits it; it counts processes by namespace, else by user."""
        steps = []
        if self.rules.memory is not None:
            steps.append(f"ulimit -d {max(1, self.rules.memory // 1024)}")
        if self.rules.processes is not None and has_own_count:
            count = self.rules.processes + _MORE_PROCESSES
            # Shells differ in the letter.
            steps.append(f"{{ ulimit -u {count} || ulimit -p {count}; }} 2>/dev/null")
        return ("/bin/sh", "-c", f'{"; ".join(steps)}; exec "$@"', "limit") if steps else ()

    @contextmanager
    def _bubblewrap_launch(
        self, program: str, private: Path, *, is_lasting: bool, outlives: bool
    ) -> Iterator[SandboxLaunch]:
        rules = self.rules
        with ExitStack() as held:
            placed = [] if is_lasting else held.enter_context(placeholders(rules))
            places = find_closed_places(rules)
            mounts = [*places.protected, *places.denied]
            # Among the protected paths only folders of repositories are mounted as writable.
            repositories = [mount.path for mount in places.protected if mount.kind == "write"]
            watched = [] if is_lasting else watched_paths(rules, repositories)
            mounts += [Mount(path, "read") for path in placed]
            mounts += folder_mounts(rules.protected, rules.writable)
            filters = held.enter_context(_filter_options())
            words = bubblewrap_arguments(program, rules, private, mounts, filters.options)
            launch = SandboxLaunch(
                "bubblewrap",
                (
                    *(word for word in words if not (outlives and word == _DIE_WITH_PARENT)),
                    *self._limiting_words(has_own_count=True),
                ),
                _environment(Path("/tmp")),  # noqa: S108 - private in there
                filters.descriptors,
                self.limits,
                placeholders=tuple(path.name for path in placed),
            )
            try:
                yield launch
            finally:
                launch.restored.extend(restore(watched))

    def _landlock_launch(self, private: Path) -> SandboxLaunch:
        denied = find_closed_places(self.rules, with_names=False).denied
        unreadable = [mount.path for mount in denied if mount.kind == "unreadable"]
        rules = {
            "writable": [str(path) for path in (*self.rules.writable, private)],
            # The launcher finds what is around them, which for a large folder would be too long an argument.
            "hidden": [str(path) for path in (*self.rules.hidden, *unreadable) if path_exists(path)],
            "closed": [
                str(mount.path)
                for mount in denied
                if mount.kind != "held" and not private.is_relative_to(mount.path)
            ],
            "network": self.rules.network,
            "filter": landlock_filter(network=self.rules.network).hex(),
        }
        launcher = (sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(rules))
        prefix = (*launcher, *self._limiting_words())
        return SandboxLaunch("landlock", prefix, _environment(private), limits=self.limits)

    def sweep(self) -> None:
        """Remove what a dead process left in the writable folders."""
        remove_stale_placeholders(self.rules)


def _environment(temporary: Path) -> dict[str, str]:
    caches = {variable: str(temporary / ".cache" / folder) for variable, folder in _CACHES}
    return {"TMPDIR": str(temporary), **caches}


_MORE_PROCESSES = 16
"""So many more than allowed are left to the kernel, so that a command over its limit is noticed and told."""


class _FilterOptions(NamedTuple):
    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@contextmanager
def _filter_options() -> Iterator[_FilterOptions]:
    """The options that give bubblewrap its system call filter, which it reads from a descriptor, once."""
    if not is_known_machine():
        yield _FilterOptions()
        return
    descriptor = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, bubblewrap_filter())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield _FilterOptions(("--seccomp", str(descriptor)), (descriptor,))
    finally:
        os.close(descriptor)


_TIMEOUT_S = 5.0
_RESTRICTED = "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"
_CAUSES = (
    ("unknown option", "it is too old: version 0.8 or newer is needed"),
    ("uid map", _RESTRICTED),
    ("loopback", _RESTRICTED),
    ("namespace", "namespaces are not permitted here, as in most containers"),
    ("proc", "/proc cannot be mounted here, as in most containers"),
)


def detect_backend() -> SandboxBackend:
    """The best backend that works here; tried once per process and program."""
    return _detect_backend(find_program("bwrap"), os.environ.get("PATH", ""))


@cache
def _detect_backend(program: str | None, path: str) -> SandboxBackend:
    if sys.platform == "darwin" and path_exists(Path(macos.PROGRAM)):
        return SandboxBackend("sandbox-exec", program=macos.PROGRAM)
    if sys.platform != "linux":
        return SandboxBackend("none", why="sandboxes need Linux or macOS")
    if program is None:
        reason = missing_reason("bwrap", path)
        problem = "bubblewrap (bwrap) is not installed" if reason == "not found" else reason
    else:
        problem = _bubblewrap_problem(program)
    if program is not None and not problem:
        return SandboxBackend("bubblewrap", program=str(Path(program).absolute()))
    abi = landlock_abi()
    if abi > 0 and is_known_machine():
        return SandboxBackend("landlock", abi=abi, why=problem)
    missing = "Landlock is not enabled in the kernel" if abi <= 0 else "this processor's system calls are not known"
    return SandboxBackend("none", why=f"{problem}; {missing}")


def _bubblewrap_problem(program: str) -> str:
    """Why it does not work; empty if it does."""
    started = ("--", "/bin/sh", "-c", ":")
    try:
        with _filter_options() as filters:
            done = subprocess.run(
                [program, *NAMESPACE_OPTIONS, *filters.options, *_system_arguments(), *started],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
                pass_fds=filters.descriptors,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not work here: {type(error).__name__}"
    if done.returncode == 0:
        return ""
    message = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:160]
    cause = next((f"{text}: " for word, text in _CAUSES if word in message.lower()), "")
    return f"{program} does not work here: {cause}{message or f'exit code {done.returncode}'}"


_DIE_WITH_PARENT = "--die-with-parent"
NAMESPACE_OPTIONS = (
    _DIE_WITH_PARENT, "--new-session", "--unshare-user", "--unshare-all", "--disable-userns", "--cap-drop", "ALL",
)  # fmt: skip
"""Always passed; a version that does not know one of these is too old."""
_SHARED_TEMP = ("/tmp", "/var/tmp")  # noqa: S108 - these are hidden, not used
_RUN = Path("/run")
_KEPT_OF_RUN = ("current-system", "booted-system", "opengl-driver")
"""Where NixOS keeps its programs."""
_RESOLVER = Path("/etc/resolv.conf")


def bubblewrap_arguments(
    program: str, rules: SandboxRules, private: Path, mounts: Sequence[Mount], more: Sequence[str] = ()
) -> list[str]:
    """The bubblewrap command line up to the program that is to be run, which the caller appends.

    Args:
        program: bubblewrap itself.
        rules: what the sandbox allows.
        private: the folder that replaces the shared folders of temporary files.
        mounts: what is closed in the writable folders.
        more: further options.
    """
    network = ("--share-net",) if rules.network else ()
    options: list[str] = []
    for mount in ordered_mounts([*_mounts(rules, private), *mounts]):
        place, source = str(mount.path), str(mount.source or mount.path)
        match mount.kind:
            case "held" | "write":
                options += "--bind", source, place
            case "read" | "locked":
                options += "--ro-bind", source, place
            case "empty" | "unreadable" if not is_folder(mount.path):
                options += "--ro-bind", str(stand_in_file(mount.kind)), place
            case "empty":
                options += "--tmpfs", place, "--remount-ro", place
            case "unreadable":
                # A command starts in its workspace even if that is closed; without one, bubblewrap starts it in /.
                inside = [folder for folder in rules.writable if folder.is_relative_to(mount.path)]
                options += "--perms", "0111" if inside else "0000", "--tmpfs", place
                for folder in inside:
                    options += "--perms", "0111", "--dir", str(folder)
                options += "--remount-ro", place
            case _ as never:
                assert_never(never)
    return [program, *NAMESPACE_OPTIONS, *more, *network, *_system_arguments(), *options, "--"]


_PROC_READ_ONLY = ("sys", "irq", "bus", "fs", "driver", "pressure", "sysrq-trigger")
_PROC_UNREADABLE = ("kcore", "keys", "key-users", "kmsg", "kallsyms", "timer_list", "mtrr", "latency_stats")
_PROC_EMPTY = ("acpi", "scsi")
"""What of `/proc` would let root, also in a user namespace, change the system or look into it."""


@cache
def _system_arguments() -> tuple[str, ...]:
    """Mounts of the system's own files: everything read-only, with a `/dev`, a `/proc` and a `/run` of its own."""
    arguments = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in (*_PROC_READ_ONLY, *_PROC_UNREADABLE, *_PROC_EMPTY):
        place = f"/proc/{name}"
        if not os.path.lexists(place):
            continue
        if name in _PROC_EMPTY:
            arguments += ["--tmpfs", place, "--remount-ro", place]
        else:
            # Devices cannot be opened there, so that what is bound to one can be neither read nor written.
            arguments += ["--ro-bind", place if name in _PROC_READ_ONLY else "/dev/null", place]
    return (*arguments, "--tmpfs", str(_RUN))


def _mounts(rules: SandboxRules, private: Path) -> Iterator[Mount]:
    """What differs from the system's own files: `/run`, temporary, visible, writable and hidden paths."""
    yield from (Mount(_RUN / name, "read") for name in _KEPT_OF_RUN if path_exists(_RUN / name))
    resolver = _RESOLVER.resolve()
    if rules.network and resolver.is_relative_to(_RUN) and path_exists(resolver):
        yield Mount(resolver, "read")
    # Folders of temporary files that all users share, except one that contains the workspace.
    temporary = dict.fromkeys(Path(name).resolve() for name in (*_SHARED_TEMP, tempfile.gettempdir()))
    shared = [folder for folder in temporary if is_folder(folder) and not _is_in(folder, rules.writable)]
    yield from (Mount(folder, "write", private) for folder in shared)
    # Of a repository of which only a part were visible, a commit would delete the rest.
    visible = [path for path in (*rules.visible, rules.repository) if path and not _is_in(path, rules.writable)]
    yield from (Mount(path, "read") for path in visible if _is_below(path, shared) and path_exists(path))
    yield from (Mount(folder, "write") for folder in rules.writable if is_folder(folder))
    yield from (Mount(path, "empty") for path in rules.hidden if path_exists(path))


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return _is_in(path, folders) and path not in folders
