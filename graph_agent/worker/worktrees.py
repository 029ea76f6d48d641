"""Git worktrees for threads, each on a branch of its own: beside the repository, or of one that is fetched.

A worktree starts from the last commit, and is never removed while it has uncommitted changes. It is trusted as the
repository is, as long as its files are the same.

Safe in a repository that somebody else wrote: git starts no hook, monitor or transport of it, and none of the
filters that its own configuration names. Those of the user's configuration, such as git-lfs, work.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from graph_agent.app.reader import read_database
from graph_agent.config.paths import folder_at, own_command
from graph_agent.config.trust import TrustFile
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.storage.private_files import make_private_folder, open_private_file
from graph_agent.wording import format_count
from tools.programs import end_with_agent, find_program
from tools.shell_ops.changed_files import GIT_OPTIONS, git_environment

if TYPE_CHECKING:
    from graph_agent.inspect import ThreadSummary

__all__ = [
    "OnWait",
    "Worktree",
    "branch_for",
    "check_out",
    "create_worktree",
    "list_worktrees",
    "remove_unused_worktree",
    "remove_worktree",
    "report_once",
    "require_address",
    "require_repository",
]

_PREFIX = "graph-agent/"
_GIT_S = 120
_FETCH_S = 1800
_LOCK_S = 2400
"""How long a repository is waited for: longer than a fetch takes."""
_SHORT_S = 0.5
"""Any wait longer than this is reported."""
_POLL_S = 0.1
_END_S = 2.0
"""How long git gets to remove its own lock files when it is stopped."""
_TRANSPORTS = ("https", "http", "ssh", "git", "file")
_FETCH = (
    *(word for name in _TRANSPORTS for word in ("-c", f"protocol.{name}.allow=always")),
    *("fetch", "--quiet", "--force", "--no-tags", "--end-of-options"),
)
_FETCHED = ("+HEAD:refs/remotes/origin/HEAD", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?![/:])\S+|[\w.-]+@[\w.-]+:\S+")
"""HOST:PATH, as ssh takes it."""
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and bytes of the command line that are not UTF-8."""
_MAX_SLUG_CHARS = 24
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP)
_FORCED = ("--force", "--force")
"""Also what is locked."""
_FILTER_OFF = {"clean": "", "smudge": "", "process": "", "required": "false"}


OnWait = Callable[[str], None]
"""Called repeatedly, with the reason, while git or another process takes long; an exception it raises ends that."""


@dataclass(frozen=True, slots=True)
class _HeldRepository:
    """A repository that no other process of graph-agent changes until this one releases it."""

    descriptor: int | None
    """Of the file or folder that is locked; None where the file system has no locks."""
    name: str
    """Its folder or address."""
    on_wait: OnWait


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that was made for a thread."""

    path: Path
    branch: str
    changed_files: int
    """Uncommitted files, including untracked ones."""
    commits: int
    """Commits that are on no other branch."""


def report_once(report: Callable[[str], None]) -> OnWait:
    """Reports each reason once."""
    reported: set[str] = set()

    def wait(reason: str) -> None:
        if reason not in reported:
            reported.add(reason)
            report(reason)

    return wait


def branch_for(text: str) -> str:
    """A new branch name that contains the first words of a prompt."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_MAX_SLUG_CHARS].strip("-")
    return f"{_PREFIX}{words or 'task'}-{uuid4().hex[:6]}"


def require_repository(folder: Path) -> Path:
    """The root of the working tree that the folder is in, of which a worktree can be made.

    Raises:
        UsageError: see `_repository_of`; or the repository's own configuration names a filter for its files.
    """
    root = _repository_of(folder)
    if filters := _own_filters(root):
        raise UsageError(
            f"The configuration of {root} starts programs for its files ({', '.join(filters)}), which graph-agent "
            "does not. If you trust them, run `git worktree add` yourself and start graph-agent in that folder."
        )
    return root


def _repository_of(folder: Path) -> Path:
    """The root of the working tree that the folder is in.

    Raises:
        UsageError: git is missing, the folder is not in a repository, or the repository has no commit.
    """
    resolved = folder_at(folder)
    if resolved is None:
        raise UsageError(f"{str(folder)!r} is not a folder.")
    found = _run_git(resolved, "rev-parse", "--show-toplevel")
    if found.returncode:
        raise UsageError(f"A worktree needs a git repository, and {str(resolved)!r} is in none: {_reason(found)}")
    root = Path(_text(found.stdout))
    if not resolved.is_relative_to(root):
        raise UsageError(
            f"The repository of {str(resolved)!r} names another folder, {str(root)!r}, as its work tree."
        )
    if _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise UsageError(f"A worktree needs a commit to start from; the repository {str(root)!r} has none yet.")
    return root


def require_address(url: str) -> str:
    """The address of a repository, in the form in which git gets it.

    Raises:
        UsageError: git would run a program for it, it cannot be kept as text, or it may hold a password or a token;
            the message does not show that.
    """
    if found := _UNSTORABLE.search(url):
        raise UsageError(
            f"The address of the repository contains {found.group()!a}, and a task keeps it as plain UTF-8 "
            "text. Rename the folder, or correct the address."
        )
    scheme, separator, location = url.partition("://")
    if separator and scheme in _TRANSPORTS and not any(map(str.isspace, url)):
        user = location.partition("/")[0].rpartition("@")[0]
        has_query = scheme != "file" and ("?" in location or "#" in location)
        if has_query or ":" in user or (user and scheme in ("http", "https")):
            raise _secret_in_address()
        return url
    if not separator and _SCP_LIKE.fullmatch(url) and not url.startswith("-"):
        host, _, behind = url.partition(":")
        if "@" in behind and "@" not in host:  # USER:PASSWORD@HOST/PATH
            raise _secret_in_address()
        return url
    path = Path(url).expanduser()
    if not separator and path.is_absolute() and not url.startswith("//"):
        return str(path)
    shown = "" if set("@?#") & set(url) else f" {url[:80]!r}"  # It may hold a password.
    raise UsageError(
        f"The repository{shown} must be an address such as https://HOST/PATH, ssh://HOST/PATH or USER@HOST:PATH, "
        "or an absolute path."
    )


def _secret_in_address() -> UsageError:
    return UsageError(
        "The address of the repository holds a user name, a password, or a part after ? or #, which the task would "
        "show. Leave them out: git on the worker's host gets them from a credential helper or an SSH key."
    )


def check_out(url: str, revision: str, branch: str, folder: Path, on_wait: OnWait) -> Path:
    """The worktree of the branch, which is created at a revision of the repository: a branch, a tag or a commit.

    Repository and worktree are in the folder. A worktree that is there already is left as it is; one that is half
    made, because git or the worker was killed, is made again once what was left of that git has ended.

    Raises:
        UsageError: git is missing, the repository cannot be reached, or it has no such revision; or another process
            holds it for too long.
    """
    place = folder / hashlib.sha256(url.encode()).hexdigest()[:16]
    with _hold_folder(place, url, on_wait) as held:
        place = place.resolve()  # As git names it.
        root, target = place / "repository", place / branch.removeprefix(_PREFIX)
        make_private_folder(root)
        _remove_left_locks(root / ".git", branch)
        # Also where there is one: git may have been killed while it made it.
        _git_or_refuse(root, "init", "--quiet", held=held)
        known = next((one for one in _entries(root) if one["worktree"] == str(target)), {})
        if known and not _is_half_made(known):
            return target
        fetched = _run_git(root, *_FETCH, url, *_FETCHED, seconds=_FETCH_S, held=held)
        if fetched.returncode:
            if _git(root, "for-each-ref", "--count=1") == "":  # Nothing was ever fetched.
                shutil.rmtree(root)
                (place / "lock").unlink()
                place.rmdir()
            raise UsageError(f"The repository {url} cannot be fetched: {_reason(fetched)}")
        commit = _commit(root, revision)
        if commit is None:
            raise UsageError(f"The repository {url} has no branch, tag or commit {revision!r}.")
        if target.exists():
            shutil.rmtree(target)
        if known:
            # Git refuses to move a branch that it believes to be checked out.
            _git_or_refuse(root, "worktree", "remove", *_FORCED, str(target), held=held)
        _git_or_refuse(root, "worktree", "add", "--quiet", "-B", branch, str(target), commit, held=held)
    return target


@contextmanager
def _hold_folder(place: Path, url: str, on_wait: OnWait) -> Iterator[_HeldRepository]:
    """Make the folder of a repository and hold it; see `_hold`."""
    while True:
        make_private_folder(place)
        try:
            descriptor = open_private_file(place / "lock")
        except FileNotFoundError:
            continue
        with _hold(descriptor, url, on_wait) as held:
            # A repository that cannot be fetched is removed, and its lock with it.
            if _is_at(place / "lock", descriptor):
                yield held
                return


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still there under this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _hold_repository(root: Path, on_wait: OnWait) -> Iterator[_HeldRepository]:
    """Hold a repository of the user, without making a file in it; see `_hold`."""
    common = root / _text(_git_or_refuse(root, "rev-parse", "--git-common-dir"))
    with _hold(os.open(common, os.O_RDONLY | os.O_CLOEXEC), str(root), on_wait) as held:
        yield held


@contextmanager
def _hold(descriptor: int, name: str, on_wait: OnWait) -> Iterator[_HeldRepository]:
    """Hold the kernel's lock on an open file or folder, and close that at the end.

    Every git that is started meanwhile inherits the lock: it is free once the last of them has ended, so that a git
    that outlived its worker is waited for, too.

    Raises:
        UsageError: another process holds it for too long.
    """
    began = time.monotonic()
    try:
        while (is_locked := _try_lock(descriptor)) is False:
            passed = time.monotonic() - began
            if passed > _LOCK_S:
                raise UsageError(
                    f"Another process has worked on the repository {name} for {passed / 60:.0f} minutes. See with "
                    "`ps` whether a git there hangs, end it, and try again."
                )
            if passed > _SHORT_S:
                on_wait(f"Waiting until another process has ended its work on the repository {name}")
            time.sleep(_POLL_S)
        yield _HeldRepository(descriptor if is_locked else None, name, on_wait)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool | None:
    """Whether this process has locked it now; None if the file system cannot, as NFS cannot lock folders."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _remove_left_locks(git: Path, branch: str) -> None:
    """Remove the lock files that a killed git left, which would make the next one fail: of what only workers write.

    In a worktree of the repository, git may work and hold the others.
    """
    if (git / "worktrees").exists():
        fetched = (lock for kind in ("remotes", "tags") for lock in (git / "refs" / kind).rglob("*.lock"))
        locks = [*fetched, git / "refs" / "heads" / f"{branch}.lock"]
    else:
        locks = list(git.rglob("*.lock"))
    for lock in locks:
        lock.unlink(missing_ok=True)


def _commit(root: Path, revision: str) -> str | None:
    """The commit that a revision names in a fetched repository; without one, that of its default branch."""
    names = [f"refs/remotes/origin/{revision or 'HEAD'}", f"refs/tags/{revision}"]
    if re.fullmatch(r"[0-9a-f]{7,64}", revision):
        names.append(revision)
    found = (
        _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{one}^{{commit}}") for one in names
    )
    return next((commit for commit in found if commit is not None), None)


def create_worktree(folder: Path, branch: str, trust: TrustFile | None, on_wait: OnWait) -> Path:
    """The same folder in the worktree of the branch, which is created if it does not exist.

    Raises:
        UsageError: see `require_repository`; or git refuses, or another process holds the repository for too long.
        StorageError: the list of what is trusted cannot be read or written.
    """
    root = require_repository(folder)
    name = branch.removeprefix(_PREFIX)
    target = root.parent / f"{root.name}-worktrees" / name
    inside = target / folder.resolve().relative_to(root)
    with _hold_repository(root, on_wait) as held:
        known = next((one for one in _entries(root) if one["worktree"] == str(target)), {})
        if known.get("branch") == f"refs/heads/{branch}" and not _is_half_made(known):
            return inside
        if _is_half_made(known):
            # No thread has begun in it.
            shutil.rmtree(target, ignore_errors=True)
        exists = _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}") is not None
        start = [str(target), branch] if exists else ["-b", branch, str(target), "HEAD"]
        forced = _FORCED if _is_half_made(known) else ()
        _git_or_refuse(root, "worktree", "add", "--quiet", *forced, *start, held=held)
    answer = trust.answer_for(folder.resolve()) if trust is not None else None
    if trust is not None and answer is not None:
        trust.answer(inside, answer)
    return inside


def list_worktrees(folder: Path) -> list[Worktree]:
    """The worktrees of the folder's repository that were made for threads.

    Raises:
        UsageError: see `_repository_of`.
    """
    return _parse(_repository_of(folder))


def remove_worktree(
    folder: Path, name: str, database: Path, trust: TrustFile | None, on_wait: OnWait
) -> tuple[Worktree, bool]:
    """Remove a worktree, and its branch unless it has commits of its own. Returns whether the branch is gone.

    Raises:
        UnknownId: there is none of this name, branch or path, and none or several whose name begins like this.
        UsageError: it has changes that are not committed, a thread of the database has work to do in it, git
            refuses, or another process holds the repository for too long.
    """
    root = _repository_of(folder)
    with _hold_repository(root, on_wait) as held:
        one = _find(_parse(root), name)
        is_half_made = any(_is_half_made(entry) for entry in _entries(root) if entry["worktree"] == str(one.path))
        if one.changed_files and not is_half_made:
            raise UsageError(
                f"{one.path} has {format_count(one.changed_files, 'changed file')}, not committed. Commit or "
                f"discard them there (`git -C {one.path} status`), then remove the worktree."
            )
        if not is_half_made:
            _refuse_while_in_use(one, database)
        forced = _FORCED if is_half_made else ()
        _git_or_refuse(root, "worktree", "remove", *forced, str(one.path), off=_own_filters(root), held=held)
        is_gone = one.commits == 0 and _git(root, "branch", "--quiet", "-D", one.branch) is not None
    for known in trust.folders() if trust is not None else ():
        if trust is not None and Path(known).is_relative_to(one.path):
            trust.forget_folder(Path(known))
    return one, is_gone


def remove_unused_worktree(
    folder: Path, inside: Path, database: Path, trust: TrustFile | None, on_wait: OnWait
) -> Worktree | None:
    """Remove the worktree that a folder is inside, and its branch, if it is unchanged and no thread works in it.

    Returns what was removed.

    Raises:
        AgentError: see `remove_worktree`.
    """
    for one in list_worktrees(folder):
        if inside.is_relative_to(one.path) and not one.commits and not one.changed_files:
            if _threads_in(one, database) or _has_ignored_files(one.path):
                return None
            return remove_worktree(folder, one.branch, database, trust, on_wait)[0]
    return None


def _find(worktrees: Sequence[Worktree], name: str) -> Worktree:
    named, begin = {one.branch.removeprefix(_PREFIX): one for one in worktrees}, name.removeprefix(_PREFIX)
    exact = [one for one in worktrees if name in (one.branch, one.branch.removeprefix(_PREFIX), str(one.path))]
    match exact or [one for own, one in named.items() if begin and own.startswith(begin)]:
        case [one]:
            return one
        case []:
            raise UnknownId(f"No worktree is called {name!r}. List them with `{own_command()} worktrees list`.")
        case several:
            names = ", ".join(one.branch.removeprefix(_PREFIX) for one in several)
            raise UnknownId(f"{name!r} matches several worktrees: {names}. Type more of the name.")


def _refuse_while_in_use(one: Worktree, database: Path) -> None:
    """Refuse if a thread that works in the worktree is open or has something left to do."""
    for thread in _threads_in(one, database):
        if thread.holder is not None or thread.status != "idle":
            is_answered = thread.answered_calls and not (thread.pending_approvals or thread.interrupted_calls)
            state = "not finished: its answered call waits for the next run" if is_answered else str(thread.status)
            if thread.holder is not None:
                state = "open"
            raise UsageError(
                f"Thread {thread.thread_id} works in {one.path} and is {state}. Finish it "
                f"(`{own_command()} resume {thread.thread_id}`) or delete it, then remove the worktree."
            )


def _threads_in(one: Worktree, database: Path) -> "list[ThreadSummary]":
    """The threads of the database that work in the worktree."""
    try:
        with read_database(database) as reader:
            return [thread for thread in reader.threads() if Path(thread.workspace).is_relative_to(one.path)]
    except NothingYet:
        return []


def _entries(root: Path) -> Iterator[Mapping[str, str]]:
    """What git says of each worktree: `worktree`, `branch`, and `locked` with a reason, among others."""
    listed = _text(_git_or_refuse(root, "worktree", "list", "--porcelain"))
    for block in filter(None, listed.split("\n\n")):
        pairs = (line.partition(" ") for line in block.split("\n"))
        yield {key: value for key, _, value in pairs}


def _is_half_made(entry: Mapping[str, str]) -> bool:
    """Whether git was killed while it made the worktree."""
    return entry.get("locked") == "initializing"


def _parse(root: Path) -> list[Worktree]:
    filters = _own_filters(root)
    found: list[Worktree] = []
    for entry in _entries(root):
        branch = entry.get("branch", "").removeprefix("refs/heads/")
        if branch.startswith(_PREFIX):
            path = Path(entry["worktree"])
            found.append(Worktree(path, branch, *_counts(root, path, branch, filters)))
    return found


def _counts(root: Path, path: Path, branch: str, filters: Sequence[str]) -> tuple[int, int]:
    """Changed files, and commits of the branch that no other branch or remote has."""
    status = _git(path, "status", "--porcelain", "--untracked-files=all", off=filters) if path.is_dir() else ""
    others = ["--not", f"--exclude={branch}", "--branches", "--remotes", "--tags"]
    commits = _git(root, "rev-list", "--count", branch, *others)
    return len((status or "").splitlines()), int(commits or 1)


def _has_ignored_files(path: Path) -> bool:
    """Whether there are files that git does not count as changes, such as build results; a new tree has none."""
    return _git(path, "status", "--porcelain", "--ignored", off=_own_filters(path)) != ""


def _own_filters(root: Path) -> list[str]:
    """The filters of files that the configuration of the repository itself names."""
    listed = _git(root, "config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\..*\.")
    words = (listed or "").split("\0")
    keys = (key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree"))
    return sorted({key.rpartition(".")[0] for key in keys})


def _git_or_refuse(
    folder: Path, *arguments: str, off: Sequence[str] = (), held: _HeldRepository | None = None
) -> bytes:
    done = _run_git(folder, *arguments, off=off, held=held)
    if done.returncode:
        raise UsageError(f"git {arguments[0]} {arguments[1]} failed: {_reason(done)}")
    return done.stdout


def _git(folder: Path, *arguments: str, off: Sequence[str] = ()) -> str | None:
    """What git prints, without the last line end; None if it fails."""
    done = _run_git(folder, *arguments, off=off)
    return None if done.returncode else _text(done.stdout)


def _text(printed: bytes) -> str:
    return os.fsdecode(printed).removesuffix("\n")


def _reason(done: "subprocess.CompletedProcess[bytes]") -> str:
    return done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"


def _run_git(
    folder: Path,
    *arguments: str,
    off: Sequence[str] = (),
    seconds: int = _GIT_S,
    held: _HeldRepository | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run git; the filters in `off` start nothing. Ctrl-C does not reach it: a worktree is not left half made.

    It is stopped if the agent is killed. What it started may live longer, and holds the lock until it ends.
    """
    git = find_program("git")
    if git is None:
        raise UsageError("A worktree needs git, which is not on PATH. Install it.")
    settings = [(f"{one}.{key}", value) for one in off for key, value in _FILTER_OFF.items()]
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    words = end_with_agent([git, *GIT_OPTIONS, *arguments], "TERM")
    try:
        with subprocess.Popen(
            words,
            cwd=folder,
            env={**git_environment(), **variables, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=() if held is None or held.descriptor is None else (held.descriptor,),
        ) as process:
            return _communicate(process, seconds, held)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git could not be run in {str(folder)!r}: {error}") from error


def _communicate(
    process: "subprocess.Popen[bytes]", seconds: int, held: _HeldRepository | None
) -> "subprocess.CompletedProcess[bytes]":
    """What the process printed, once it has ended; it is stopped if it takes too long or `on_wait` raises."""
    until = time.monotonic() + seconds
    try:
        while True:
            try:
                printed, errors = process.communicate(timeout=min(_SHORT_S, seconds))
            except subprocess.TimeoutExpired as expired:
                if time.monotonic() >= until:
                    raise subprocess.TimeoutExpired(expired.cmd, seconds) from None
                if held is not None:
                    held.on_wait(f"Waiting for git, which works on the repository {held.name}")
            else:
                return subprocess.CompletedProcess(process.args, process.returncode, printed, errors)
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            process.kill()
