"""What came of a command, in words: nothing is called a success that only looks like one."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.context import ToolContext
from tools.kinds import ToolErrorType
from tools.result import ToolResult, failure
from tools.shaping import head_and_tail, keep, shape
from tools.shell_ops.output import clean
from tools.shell_ops.spool import Spool

__all__ = ["Ending", "code_in_words", "hint_of", "output_between", "told"]

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
class Ending:
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
    stand_ins: tuple[str, ...] = ()
    """Names that only the sandbox made the command see."""
    prologue: str = ""
    """What was put before the command; the shell quotes it in syntax errors, where it would only puzzle."""


def told(command: str, ending: Ending, spool: Spool, context: ToolContext) -> ToolResult:
    """The result of a command that has ended."""
    if ending.stopped == "flood":
        spool.cut(context.limits.spool_bytes)
    text, metadata = output_between(spool, context, 0, spool.size)
    text = text.replace(ending.prologue, "") if ending.prologue else text
    status = _status(command, ending, context.limits.spool_bytes)
    hint = hint_of(text, ending.code)
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


def output_between(spool: Spool, context: ToolContext, start: int, end: int) -> tuple[str, dict[str, Any]]:
    """A part of the output, readable and cut to the context's limit, and what is to be noted of it."""
    size, limit = end - start, context.limits.result_chars
    if size <= _WHOLE_BYTES:
        shaped = shape(ToolResult(clean(spool.read(start, size))), limit, context.blobs)
        return shaped.output, {"output_bytes": size, **shaped.metadata}
    reference = keep(spool.read(start, size), context.blobs)
    how = (
        f'read more with read_file(file_path="{reference}", offset=..., limit=...)' if reference else "use a filter"
    )
    ends = f"{clean(spool.read(start, limit))}\n{clean(spool.read(end - limit, limit))}"
    text = head_and_tail(ends, limit, f"left out here: the whole output has {size} bytes; {how}")
    metadata: dict[str, Any] = {"output_bytes": size, "truncated": True}
    return text, metadata | ({"blob": reference} if reference else {})


def _status(command: str, ending: Ending, spool_bytes: int) -> str:
    if ending.stopped == "timeout":
        return f"stopped after {ending.timeout_s:g} seconds, its time limit; what it did until then stays done"
    if ending.stopped == "flood":
        return f"stopped because it wrote more than {spool_bytes} bytes; only those were kept"
    return code_in_words(ending.code, command)


def code_in_words(code: int, command: str) -> str:
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


def hint_of(text: str, code: int) -> str:
    """What helps where a command failed for want of input; empty where it did not."""
    wanted_input = _NO_INPUT.search(text) or _ASKED.search(text)
    if not _NO_TERMINAL.search(text) and (code == 0 or not wanted_input):
        return ""
    return "[commands run without a terminal and without input: use options that answer beforehand, e.g. --yes]"


def _walls(text: str, ending: Ending) -> str:
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


def _seen_stand_ins(text: str, ending: Ending) -> str:
    """Told where they were listed, or may be why it failed: a `.env` that cannot be read is not there at all."""
    shown = [one for one in ending.stand_ins if re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w.-])", text)]
    if not shown or (ending.code == 0 and len(shown) < _LISTED):
        return ""
    return f"[not there, but kept closed by the sandbox while a command runs: {', '.join(shown)}]"


def _left(ending: Ending) -> str:
    if not ending.left:
        return ""
    named = [one.replace(ending.prologue, "") if ending.prologue else one for one in ending.left[:_NAMED]]
    more = f" and {len(ending.left) - _NAMED} more" if len(ending.left) > _NAMED else ""
    return f"[it left processes running, which were ended with the call: {', '.join(named)}{more}]"


def _folder(ending: Ending) -> str:
    if ending.folder is not None:
        return f"[working directory is now {ending.folder}]"
    if ending.outside is not None:
        return (
            f"[the shell ended outside the workspace, in {ending.outside}; the next one starts in {ending.start}]"
        )
    return ""
