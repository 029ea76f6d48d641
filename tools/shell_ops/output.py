"""Raw output of a command made readable: no escape sequences, no overwritten progress lines; any bytes survive.

The private file a command writes to, and the look at its end while it grows.

What came of a command, in words: nothing is called a success that only looks like one.
"""

import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.context import ToolContext
from tools.result import ToolErrorType, ToolResult, failure
from tools.running import head_and_tail, limit_result, store_blob

__all__ = [
    "CommandEnd",
    "Spool",
    "clean_output",
    "exit_code_file",
    "format_exit_code",
    "incomplete_tail_length",
    "input_hint",
    "last_complete_byte",
    "open_existing_spool",
    "open_spool",
    "read_exit_code",
    "read_output_range",
    "told",
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
    """The text a person would have read in the end; undecodable bytes become replacement characters."""
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def incomplete_tail_length(raw: bytes) -> int:
    """How many bytes at the end may be the beginning of a character that goes on in the next piece."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
    return 0


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


_CODE_FILE = ".code"
"""Ending of the name of the file beside the spool of a background command that takes its exit code."""

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

    def follow(self, tell: Callable[[str], None]) -> None:
        """Tell what has come since the last time; only the end of what came in a flood."""
        size = self.size
        if size <= self._position:
            return
        start = max(self._position, size - _PIECE_BYTES)
        piece = os.pread(self._source, size - start, start)
        kept = len(piece) - incomplete_tail_length(piece)
        self._position = start + kept
        if text := clean_output(piece[:kept]):
            tell(text)

    def cut(self, size: int) -> None:
        """Give back what lies behind this size."""
        os.ftruncate(self.sink, size)

    def read(self, start: int = 0, count: int | None = None) -> bytes:
        """Bytes of the spool, to its end unless a count is given."""
        wanted = self.size - start if count is None else count
        parts = []
        while wanted > 0 and (part := os.pread(self._source, wanted, start)):
            parts.append(part)
            start += len(part)
            wanted -= len(part)
        return b"".join(parts)


def last_complete_byte(path: Path, start: int) -> int:
    """Up to where the file can be read from here without cutting a character in two."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return max(start, size - incomplete_tail_length(os.pread(file.fileno(), 4, max(start, size - 4))))
    except FileNotFoundError:
        return start


def exit_code_file(spool: Path) -> Path:
    """Where the shell of a background command writes its exit code."""
    return spool.with_name(f"{spool.name}{_CODE_FILE}")


def read_exit_code(spool: Path) -> int | None:
    """The exit code that the shell wrote down; None where it could not."""
    try:
        text = exit_code_file(spool).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


@contextmanager
def open_existing_spool(path: Path) -> Iterator[Spool]:
    """The spool of a command that somebody else keeps.

    Raises:
        FileNotFoundError: it is gone.
    """
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Spool(source, source)
    finally:
        os.close(source)


@contextmanager
def open_spool(path: Path | None) -> Iterator[Spool]:
    """The spool at a path, or one without a name that goes with the process."""
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


_WHOLE_BYTES = 1024 * 1024
"""Up to here all of the output is cleaned; of more, the beginning and the end."""
_NAMED = 5
"""So many processes are told by what they run, and how many there are beyond."""
_LISTED = 3
"""So many names that are not there are no chance: the folder was listed."""
_SEVERAL = re.compile(r"[|;&\n]")
_AS_ONE = re.compile(r"&&|[<>]&|&>")
"""What hides no failure: a chain that stops at one, and redirections like `2>&1`."""
_NO_TERMINAL = re.compile(
    r"/dev/tty['\"]?: (?:no such device|cannot open)|open ['\"]?/dev/tty"
    r"|/dev/tty[^\n]*no such device|no such device[^\n]*/dev/tty",
    re.IGNORECASE,
)
"""Said of the terminal itself: told whatever the exit code, as the code is often that of what came after."""
_NO_INPUT = re.compile(
    r"not (?:from )?a t(?:ty|erminal)|failed tty get|no tty present|terminal is required|terminal prompts disabled"
    r"|EOFError|EOF when reading|inappropriate ioctl",
    re.IGNORECASE,
)

_ASKED = re.compile(r"[?:>)\]] *\Z")
"""How the last line of a program ends that asked something and got no answer."""

_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"permission denied|operation not permitted|device or resource busy|\bE(?:ACCES|PERM|BUSY)\b"
    r"|gpg failed to sign",
    re.IGNORECASE,
)
_UNREACHED = re.compile(
    r"network is unreachable|could ?n(?:o|')t resolve host|name or service not known|name resolution"
    r"|no address associated|nodename nor servname|cannot assign requested address|connection refused"
    r"|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND|ECONNREFUSED)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended."""

    code: int
    """Exit code of the shell, or minus the signal that killed it."""
    stopped: Literal["timeout", "flood"] | None
    timeout_s: float
    seconds: float
    folder: Path | None
    """Where the shell stands from now on, when that changed."""
    outside: Path | None
    """Where the shell ended when that is outside the workspace."""
    start: Path
    left: tuple[str, ...] = ()
    """What the command left running and was stopped with it, in words."""
    limits: str = ""
    """Of the sandbox it ran in, in words; empty without one."""
    undone: tuple[Path, ...] = ()
    """What the command made or changed that the sandbox put back."""
    placeholders: tuple[str, ...] = ()
    """Names that only the sandbox made the command see."""
    exit_trap: str = ""
    """What was put before the command; the shell quotes it in syntax errors, where it would only puzzle."""


def told(command: str, ending: CommandEnd, spool: Spool, context: ToolContext) -> ToolResult:
    """The result of a command that has ended."""
    if ending.stopped == "flood":
        spool.cut(context.limits.spool_bytes)
    text, metadata = read_output_range(spool, context, 0, spool.size)
    text = text.replace(ending.exit_trap, "") if ending.exit_trap else text
    status = _status(command, ending, context.limits.spool_bytes)
    hint = input_hint(text, ending.code)
    walls = _walls(text, ending)
    seen = _seen_stand_ins(text, ending)
    parts = (text.rstrip("\n") or "(no output)", f"[{status}]", hint, seen, walls, _left(ending), _folder(ending))
    output = "\n".join(part for part in parts if part)
    metadata |= {"exit_code": ending.code if ending.code >= 0 else None, "seconds": round(ending.seconds, 3)}
    if ending.code < 0:
        metadata["signal"] = _signal_name(-ending.code)
    if ending.left:
        metadata["ended_processes"] = list(ending.left)
    if ending.folder is not None:
        metadata["cwd"] = str(ending.folder)
    if ending.stopped == "timeout":
        return failure(ToolErrorType.TIMEOUT, _with_next(status), output=output, **metadata)
    if ending.stopped or ending.code != 0:
        return failure(ToolErrorType.EXECUTION, _with_next(status), output=output, **metadata)
    return ToolResult(output, display=status, metadata=metadata)


def read_output_range(spool: Spool, context: ToolContext, start: int, end: int) -> tuple[str, dict[str, Any]]:
    """A part of the output, readable and cut to the context's limit, and what is to be noted of it."""
    size, limit = end - start, context.limits.result_chars
    if size <= _WHOLE_BYTES:
        shaped = limit_result(ToolResult(clean_output(spool.read(start, size))), limit, context.blobs)
        return shaped.output, {"output_bytes": size, **shaped.metadata}
    reference = store_blob(spool.read(start, size), context.blobs)
    how = (
        f'read more with read_file(file_path="{reference}", offset=..., limit=...)' if reference else "use a filter"
    )
    ends = f"{clean_output(spool.read(start, limit))}\n{clean_output(spool.read(end - limit, limit))}"
    text = head_and_tail(ends, limit, f"left out here: the whole output has {size} bytes; {how}")
    metadata: dict[str, Any] = {"output_bytes": size, "truncated": True}
    return text, metadata | ({"blob": reference} if reference else {})


def _status(command: str, ending: CommandEnd, spool_bytes: int) -> str:
    if ending.stopped == "timeout":
        return f"stopped after {ending.timeout_s:g} seconds, its time limit; what it did until then stays done"
    if ending.stopped == "flood":
        return f"stopped because it wrote more than {spool_bytes} bytes; only those were kept"
    return format_exit_code(ending.code, command)


def format_exit_code(code: int, command: str) -> str:
    """An exit code, or minus a signal, told for what it is."""
    if code < 0:
        return f"killed by signal {_signal_name(-code)}"
    name = _signal_name(code - 128) if 128 < code < 193 else ""
    by_signal = f", which usually means signal {name}" if name else ""
    is_hiding = _SEVERAL.search(_AS_ONE.sub(" ", command.strip())) is not None
    last = ", that of the last command; earlier ones may have failed" if is_hiding else ""
    return f"exit code {code}{by_signal}{last}"


def _with_next(status: str) -> str:
    return f"The command failed: {status}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"number {number}" if number > 31 else ""


def input_hint(text: str, code: int) -> str:
    """What helps where a command failed for want of input; empty where it did not."""
    wanted_input = _NO_INPUT.search(text) or _ASKED.search(text)
    if not _NO_TERMINAL.search(text) and (code == 0 or not wanted_input):
        return ""
    return "[commands run without a terminal and without input: use options that answer beforehand, e.g. --yes]"


def _walls(text: str, ending: CommandEnd) -> str:
    """What the sandbox had to do with it."""
    undone = ""
    if ending.undone:
        named = ", ".join(str(path) for path in ending.undone)
        undone = f"[the sandbox put back what may not be changed: {named}]"
    failed = ending.code != 0 and (_REFUSED.search(text) or _UNREACHED.search(text))
    if not ending.limits or not (failed or _READ_ONLY.search(text)):
        return undone
    hint = (
        f"[it ran in the sandbox, where {ending.limits}, and names that decide what runs later cannot be changed. "
        "If that is why it failed, do not get around it: say so and call for it again; the user can let that one "
        "call run outside of the sandbox, or change the settings sandbox_write and sandbox_network]"
    )
    return f"{undone}\n{hint}" if undone else hint


def _seen_stand_ins(text: str, ending: CommandEnd) -> str:
    """Told where they were listed, or may be why it failed: a `.env` that cannot be read is not there at all."""
    shown = [one for one in ending.placeholders if re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w.-])", text)]
    if not shown or (ending.code == 0 and len(shown) < _LISTED):
        return ""
    return f"[not there, but kept closed by the sandbox while a command runs: {', '.join(shown)}]"


def _left(ending: CommandEnd) -> str:
    if not ending.left:
        return ""
    named = [one.replace(ending.exit_trap, "") if ending.exit_trap else one for one in ending.left[:_NAMED]]
    more = f" and {len(ending.left) - _NAMED} more" if len(ending.left) > _NAMED else ""
    return f"[it left processes running, which were ended with the call: {', '.join(named)}{more}]"


def _folder(ending: CommandEnd) -> str:
    if ending.folder is not None:
        return f"[working directory is now {ending.folder}]"
    if ending.outside is not None:
        return (
            f"[the shell ended outside the workspace, in {ending.outside}; the next one starts in {ending.start}]"
        )
    return ""
