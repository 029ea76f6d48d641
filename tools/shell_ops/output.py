"""The output of commands: the private file they write to, made readable, and the result of a command."""

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tools.base import ToolContext
from tools.result import ToolErrorType, ToolResult, failure
from tools.running import head_and_tail, limit_result, store_blob
from tools.sandbox.sandbox import NO_LIMITS, ResourceLimits
from tools.shell_ops.process import strip_prelude
from tools.text import format_count

__all__ = [
    "CommandEnd",
    "ShellReport",
    "Spool",
    "clean_output",
    "format_bytes",
    "format_exit_code",
    "format_limits",
    "format_result",
    "incomplete_tail_length",
    "input_hint",
    "last_complete_byte",
    "open_existing_spool",
    "open_spool",
    "parse_report",
    "read_output_range",
    "read_report",
    "report_file",
    "trim_spool",
]

_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # titles, links and other strings up to their end
    r"|[ -/]*[0-~]"  # two-character sequences
    r")"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean_output(raw: bytes) -> str:
    """The text that remains on a terminal in the end; undecodable bytes become replacement characters."""
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        # Of a line that was overwritten, the last version that is not empty.
        text = "\n".join(next(filter(None, reversed(line.split("\r"))), "") for line in text.split("\n"))
    return strip_prelude(_CONTROLS.sub("", text))


def incomplete_tail_length(raw: bytes) -> int:
    """How many bytes at the end may be the beginning of a character that the next piece completes."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
    return 0


_PIECE_BYTES = 64 * 1024


class Spool:
    """An open spool; `sink` is what the command writes to."""

    def __init__(self, sink: int, source: int) -> None:
        self.sink = sink
        self._source = source
        self._position = 0

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return os.fstat(self._source).st_size

    def follow(self, report: Callable[[str], None]) -> None:
        """Report what was written since the last time; of very much only the end."""
        size = self.size
        if size <= self._position:
            return
        start = max(self._position, size - _PIECE_BYTES)
        piece = os.pread(self._source, size - start, start)
        kept = len(piece) - incomplete_tail_length(piece)
        self._position = start + kept
        if text := clean_output(piece[:kept]):
            report(text)

    def trim(self, max_bytes: int) -> None:
        """Free the middle of more than this."""
        trim_spool(self.sink, max_bytes)

    def gap(self, start: int, end: int) -> tuple[int, int]:
        """Which part of a range was freed, if any; otherwise it begins and ends at the end of the range."""
        try:
            freed = os.lseek(self._source, start, os.SEEK_HOLE)
        except OSError:  # An empty file.
            freed = end
        if freed >= end:
            return end, end
        try:
            return freed, min(end, os.lseek(self._source, freed, os.SEEK_DATA))
        except OSError:  # Nothing was written since.
            return freed, end

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Bytes of the spool, to its end unless a count is given."""
        wanted = self.size - start if count is None else count
        parts = []
        while wanted > 0 and (part := os.pread(self._source, wanted, start)):
            parts.append(part)
            start += len(part)
            wanted -= len(part)
        return b"".join(parts)


@contextmanager
def open_spool(path: Path | None) -> Iterator[Spool]:
    """The spool at a path, or one without a name that is gone when the process ends."""
    if path is None:
        sink, name = tempfile.mkstemp(prefix="graph-agent-")
        source = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        Path(name).unlink()
        os.set_blocking(sink, True)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        sink = os.open(path, flags, 0o600)
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Spool(sink, source)
    finally:
        os.close(sink)
        os.close(source)


@contextmanager
def open_existing_spool(path: Path) -> Iterator[Spool]:
    """The spool of a background command, for reading.

    Raises:
        FileNotFoundError: it was removed.
    """
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Spool(source, source)
    finally:
        os.close(source)


_FREE_BLOCKS = 4096
"""File systems free whole blocks of at most this size."""
_PUNCH_HOLE = 0x02 | 0x01
"""Of Linux: free the range, and keep the size of the file."""
_F_PUNCHHOLE = 99
"""The same of macOS, for `fcntl`."""


def trim_spool(spool: int, max_bytes: int) -> None:
    """Keep so much of a spool that is open for writing: half of it the beginning, half the end.

    What is written later stays where it would be without that: nothing that was read or counted moves.
    """
    found = os.fstat(spool)
    if found.st_size <= max_bytes or found.st_blocks * 512 <= max_bytes:
        return
    start = max_bytes // 2 // _FREE_BLOCKS * _FREE_BLOCKS
    end = (found.st_size - max_bytes // 2) // _FREE_BLOCKS * _FREE_BLOCKS
    if end > start and not _free(spool, start, end - start):
        # Where a file system can free the end of a file only, all but its beginning.
        os.ftruncate(spool, start)
        os.ftruncate(spool, found.st_size)


def _free(file: int, start: int, count: int) -> bool:
    if sys.platform != "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, _F_PUNCHHOLE, struct.pack("@IIqq", 0, 0, start, count))
            return True
        return False
    libc = ctypes.CDLL(None)
    free = getattr(libc, "fallocate64", libc.fallocate)
    return bool(free(file, _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(count)) == 0)


def last_complete_byte(path: Path, start: int) -> int:
    """Up to where the file can be read from `start` without splitting a character."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return max(start, size - incomplete_tail_length(os.pread(file.fileno(), 4, max(start, size - 4))))
    except FileNotFoundError:
        return start


@dataclass(frozen=True)
class ShellReport:
    """What a shell reported of the commands that it ran; see `process.shell_prelude`."""

    code: int | None = None
    """Its exit code; None if it did not exit on its own."""
    folder: str = ""
    """The folder in which it exited."""
    last: tuple[int, ...] = ()
    """The exit codes of the last pipeline."""
    failed: tuple[int, ...] = ()
    """Those of the first command or pipeline of which something failed."""
    failed_command: str = ""
    """The text of a failed command; empty for a pipeline, and where `|| true` follows."""
    has_background: bool = False
    """Whether it started a process in the background."""


def parse_report(raw: bytes) -> ShellReport:
    """What a shell has reported; an earlier version wrote nothing but the exit code."""
    text = raw.decode("utf-8", "surrogateescape").rstrip("\n")
    if text.isdigit():
        return ShellReport(int(text))
    *failures, end = text.split("\0")
    report = ShellReport()
    for failure_text in failures:
        codes, _, command = failure_text.removeprefix("F").partition("|")
        report = ShellReport(failed=_codes(codes), failed_command=command)
        if _failed_members(report.failed) or report.failed[-1:] > (0,):
            break
    is_whole = end.startswith("E") and end.count("|") >= 3
    code, last, background, folder = end[1:].split("|", 3) if is_whole else [""] * 4
    return replace(
        report,
        code=int(code) if code.isdigit() else None,
        folder=folder,
        last=_codes(last),
        has_background=bool(background),
    )


def _codes(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def report_file(spool: Path) -> Path:
    """Where the shell of a background command reports."""
    return spool.with_name(f"{spool.name}.code")


def read_report(spool: Path) -> ShellReport:
    """What the shell of a background command has reported."""
    try:
        return parse_report(report_file(spool).read_bytes())
    except OSError:
        return ShellReport()


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended."""

    code: int
    """Exit code of the shell, or minus the signal that killed it."""
    stopped: Literal["timeout", "memory_limit", "process_limit"] | None
    timeout_s: float
    seconds: float
    folder: Path | None
    """The folder of the shell from now on, if it changed."""
    outside: Path | None
    """The folder in which the shell ended, if it is outside the workspace."""
    start: Path
    left: tuple[str, ...] = ()
    """The processes that the command left running and that were ended with it, in words."""
    limits: ResourceLimits = NO_LIMITS
    """Those of the sandbox it ran in."""
    restrictions: str = ""
    """Those of the sandbox it ran in, in words; empty without one."""
    restored: tuple[Path, ...] = ()
    """Protected names that the command created or changed and the sandbox restored."""
    placeholders: tuple[str, ...] = ()
    """Names that only the sandbox made visible to the command."""
    report: ShellReport = ShellReport()


def format_result(end: CommandEnd, spool: Spool, context: ToolContext) -> ToolResult:
    """The result of a command that has ended."""
    if end.stopped == "timeout":
        status = f"stopped after {end.timeout_s:g} seconds, its time limit; what it did until then is not undone"
    elif end.stopped is not None:
        status = f"stopped because it {_LIMIT_REASONS[end.stopped]}: {format_limits(end.limits)}"
    else:
        status = format_exit_code(end.code, end.report)
    text, metadata = read_output_range(spool, context, 0, spool.size)
    output = "\n".join(filter(None, (text.rstrip("\n") or "(no output)", f"[{status}]", *_notes(text, end))))
    metadata |= {"exit_code": end.code if end.code >= 0 else None, "seconds": round(end.seconds, 3)}
    if end.code < 0:
        metadata["signal"] = _signal_name(-end.code)
    if len(end.report.last) > 1:
        metadata["pipeline"] = list(end.report.last)
    if end.left:
        metadata["ended_processes"] = list(end.left)
    if end.folder is not None:
        metadata["cwd"] = str(end.folder)
    if end.stopped or end.code != 0:
        kind = ToolErrorType.TIMEOUT if end.stopped == "timeout" else ToolErrorType.EXECUTION
        return failure(kind, f"The command failed: {status}.", output=output, **metadata)
    return ToolResult(output, display=status, metadata=metadata)


def _notes(text: str, end: CommandEnd) -> Iterator[str]:
    """What to know beside the output, and advice where something outside the command may be why it failed."""
    yield input_hint(text, end.code)
    shown = [name for name in end.placeholders if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text)]
    # Placeholders were listed, or may be why it failed: an unreadable `.env` does not exist at all.
    if shown and (end.code != 0 or len(shown) >= _MIN_LISTED):
        yield f"[these do not exist; the sandbox only shows them while a command runs: {', '.join(shown)}]"
    if end.restored:
        yield f"[the sandbox restored protected names: {', '.join(map(str, end.restored))}]"
    failed = end.code != 0 and (_REFUSED.search(text) or _UNREACHABLE.search(text))
    if end.restrictions and (failed or _READ_ONLY.search(text)):
        yield (
            f"[it ran in the sandbox, where {end.restrictions}, and names that decide what runs later cannot be "
            "changed. If that is why it failed, do not work around it: say so and make the call again; the user "
            "can let that one call run outside the sandbox, or change the settings sandbox_write and "
            "sandbox_network]"
        )
    if end.code != 0 and end.stopped is None and end.limits != NO_LIMITS and _EXHAUSTED.search(text):
        yield f"[it ran with limits, which may be why it failed: {format_limits(end.limits)}]"
    if end.left:
        named = ", ".join(end.left[:_MAX_NAMED])
        more = f" and {len(end.left) - _MAX_NAMED} more" if len(end.left) > _MAX_NAMED else ""
        yield f"[it left processes running, which were ended with the call: {named}{more}]"
    if end.folder is not None:
        yield f"[working directory is now {end.folder}]"
    elif end.outside is not None:
        yield f"[the shell ended outside the workspace, in {end.outside}; the next one starts in {end.start}]"


_LIMIT_REASONS = {"memory_limit": "used too much memory", "process_limit": "had too many processes"}


def format_limits(limits: ResourceLimits) -> str:
    """The limits of a command, with the settings that they come from."""
    memory = "" if limits.memory is None else f"{format_bytes(limits.memory)} of memory (setting sandbox_memory)"
    processes = "" if limits.processes is None else f"{limits.processes} processes (setting sandbox_processes)"
    return " and ".join(filter(None, (memory, processes)))


def format_bytes(size: int) -> str:
    """A size in the largest unit in which it is a whole number."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if size % (1 << 10 * power) == 0:
            return f"{size >> 10 * power} {unit}"
    return format_count(size, "byte")


_MAX_CLEANED_BYTES = 1024 * 1024
"""Up to this size the whole output is cleaned; of more, the beginning and the end."""


def read_output_range(spool: Spool, context: ToolContext, start: int, end: int) -> tuple[str, dict[str, Any]]:
    """A part of the output, readable and cut to the context's limit, with its metadata."""
    size, limit = end - start, context.limits.result_chars
    gap, resumed = spool.gap(start, end)
    if size <= _MAX_CLEANED_BYTES and gap == end:
        limited = limit_result(ToolResult(clean_output(spool.read(start, size))), limit, context.blobs)
        return limited.output, {"output_bytes": size, **limited.metadata}
    kept = spool.read(start, gap - start)
    freed = f"; {resumed - gap} bytes from its middle were not kept" if resumed > gap else ""
    if freed:
        kept += b"\n[%d bytes of the output were not kept]\n" % (resumed - gap) + spool.read(resumed, end - resumed)
    reference = store_blob(kept, context.blobs)
    how = (
        f'read more with read_file(file_path="{reference}", offset=..., limit=...)' if reference else "use a filter"
    )
    ends = f"{clean_output(kept[:limit])}\n{clean_output(kept[-limit:])}"
    text = head_and_tail(ends, limit, f"left out here: the whole output has {size} bytes{freed}; {how}")
    metadata: dict[str, Any] = {"output_bytes": size, "truncated": True}
    return text, metadata | ({"blob": reference} if reference else {})


def format_exit_code(code: int, report: ShellReport) -> str:
    """An exit code, or minus a signal, what it means, and which failures it hides."""
    if code < 0:
        return f"killed by signal {_signal_name(-code)}"
    name = _signal_name(code - _SIGNALLED) if _SIGNALLED < code < 193 else ""
    by_signal = f", which usually means signal {name}" if name else ""
    hidden = _format_failure("the pipeline", report.last) if _failed_members(report.last) else ""
    if not hidden and (_failed_members(report.failed) or code not in (report.failed[-1:] or (code,))):
        hidden = _format_failure("an earlier pipeline", report.failed, report.failed_command)
    if not hidden and code == 0 and report.has_background:
        hidden = "; how its background processes ended is not known"
    return f"exit code {code}{by_signal}{hidden}"


_SIGNALLED = 128
_UNREAD = _SIGNALLED + signal.SIGPIPE
"""How a member of a pipeline ends whose output the next one did not read to the end, which is no failure."""


def _failed_members(codes: tuple[int, ...]) -> list[int]:
    """Which members of a pipeline before the last one failed; the exit code of the pipeline hides them."""
    return [number for number, code in enumerate(codes[:-1], 1) if code not in (0, _UNREAD)]


def _format_failure(pipeline: str, codes: tuple[int, ...], command: str = "") -> str:
    if len(codes) == 1:
        first, *more = command.strip().split("\n")
        cut = "…" if more or len(first) > _MAX_COMMAND_CHARS else ""
        named = f": {first[:_MAX_COMMAND_CHARS]}{cut}" if first else ""
        return f"; an earlier command failed with exit code {codes[0]}{named}"
    failed = _failed_members(codes) or [len(codes)]
    members = (f"command {number} of {len(codes)} failed with exit code {codes[number - 1]}" for number in failed)
    return f"; in {pipeline}, {' and '.join(members)}"


_MAX_COMMAND_CHARS = 80


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"number {number}" if number > 31 else ""


_NO_TERMINAL = re.compile(
    r"/dev/tty['\"]?: (?:no such device|cannot open)|open ['\"]?/dev/tty"
    r"|/dev/tty[^\n]*no such device|no such device[^\n]*/dev/tty",
    re.IGNORECASE,
)
"""Messages about the terminal itself: they count whatever the exit code, which may be that of a later command."""
_NO_INPUT = re.compile(
    r"not (?:from )?a t(?:ty|erminal)|failed tty get|no tty present|terminal is required|terminal prompts disabled"
    r"|EOFError|EOF when reading|inappropriate ioctl",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?:>)\]] *\Z")
"""How the output of a program ends that asked something and got no answer."""


def input_hint(text: str, code: int) -> str:
    """Advice if a command failed because it asked for input; otherwise empty."""
    wanted_input = _NO_INPUT.search(text) or _QUESTION.search(text)
    if not _NO_TERMINAL.search(text) and (code == 0 or not wanted_input):
        return ""
    return "[commands run without a terminal and without input: use options that answer beforehand, e.g. --yes]"


_MIN_LISTED = 3
"""So many placeholders in the output mean that the folder was listed."""
_MAX_NAMED = 5
"""So many processes are named, and the number of the others."""
_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"permission denied|operation not permitted|device or resource busy|\bE(?:ACCES|PERM|BUSY)\b"
    r"|gpg failed to sign",
    re.IGNORECASE,
)
_EXHAUSTED = re.compile(
    r"cannot allocate memory|out of memory|memory exhausted|MemoryError|bad_alloc|resource temporarily unavailable"
    r"|can't start new thread|cannot fork|\b(?:ENOMEM|EAGAIN)\b",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"network is unreachable|could ?n(?:o|')t resolve host|name or service not known|name resolution"
    r"|no address associated|nodename nor servname|cannot assign requested address|connection refused"
    r"|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)
