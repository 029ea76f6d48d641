"""The commands that run a session: `chat`, `resume`, `run` and `demo`. Each body loads its own modules."""

import signal
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.options import Database, resolve_database

if TYPE_CHECKING:
    from graph_agent.cli.session_target import Target


__all__ = ["Output", "Recover", "chat", "demo", "resume", "run"]


class Output(StrEnum):
    """Output formats of `run`."""

    text = "text"
    json = "json"
    stream = "stream-json"


class Recover(StrEnum):
    """What `run` does with interrupted calls."""

    ask = "ask"
    retry_safe = "retry-safe"
    cancel = "cancel"


Model = Annotated[str | None, Option("--model", help="Model or profile. Default: the configured one.")]
Mode = Annotated[
    str | None, Option("--mode", help="default, acceptEdits, plan, auto, dontAsk or bypassPermissions.")
]
Bypass = Annotated[bool, Option("--dangerously-skip-permissions", help="Same as --mode bypassPermissions.")]
Workspace = Annotated[str | None, Option("--workspace", help="Working directory (moves the thread).")]
Thread = Annotated[str | None, Option("--thread", help="Thread to continue or create.")]
Resume = Annotated[
    str | None,
    Option("--resume", metavar="[ID]", help="Resume this thread or checkpoint. Default: the newest thread here."),
]
NoStream = Annotated[bool, Option("--no-stream", help="Disable streaming.")]
MaxSteps = Annotated[int | None, Option("--max-steps", min=1, help="Limit of model requests per turn.")]
MaxTokens = Annotated[int | None, Option("--max-tokens", min=1, help="Limit of tokens per turn.")]
MaxCost = Annotated[
    float | None, Option("--max-cost", min=0.000001, metavar="AMOUNT", help="Cost limit per turn; needs a price.")
]


AddDir = Annotated[
    list[str] | None,
    Option("--add-dir", metavar="DIR", help="Additional working directory, kept with the thread; repeatable."),
]
Approve = Annotated[
    list[str] | None, Option("--approve", metavar="CALL|all", help="Approve a pending call; repeatable.")
]
Reject = Annotated[
    list[str] | None, Option("--reject", metavar="CALL|all", help="Reject a pending call; repeatable.")
]
Timeout = Annotated[
    float | None, Option("--timeout", min=0.001, metavar="SECONDS", help="Pause the turn after this time.")
]
Trust = Annotated[bool, Option("--trust", help="Trust project config for this run only.")]


def chat(
    message: Annotated[str | None, Argument(help="First message.")] = None,
    *,
    thread: Thread = None,
    model: Model = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    workspace: Workspace = None,
    add_dir: AddDir = None,
    db: Database = None,
    no_stream: NoStream = False,
) -> None:
    """Start an interactive session; side effects need approval."""
    from graph_agent.cli.session_target import absolute_paths, resolve_target

    flags = {**_flags(model, mode, db, skip_permissions, no_stream, None), "add_dirs": absolute_paths(add_dir)}
    _open_chat(resolve_target(flags, workspace=workspace, thread=thread, resume=None), message)


def resume(
    identifier: Annotated[
        str, Argument(metavar="[ID]", help="Thread or checkpoint id. Default: the newest thread here.")
    ] = "",
    *,
    model: Model = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    workspace: Workspace = None,
    add_dir: AddDir = None,
    db: Database = None,
    no_stream: NoStream = False,
) -> None:
    """Resume a thread in the chat. Interrupted calls and pending approvals come first."""
    from graph_agent.cli.session_target import absolute_paths, resolve_target

    flags = {**_flags(model, mode, db, skip_permissions, no_stream, None), "add_dirs": absolute_paths(add_dir)}
    _open_chat(resolve_target(flags, workspace=workspace, thread=None, resume=identifier), None)


def run(
    prompt: Annotated[str | None, Argument(help="The task; - reads it from stdin.")] = None,
    *,
    output: Annotated[Output, Option("--output", help="Output format.")] = Output.text,
    thread: Thread = None,
    resume: Resume = None,
    approve: Approve = None,
    reject: Reject = None,
    reason: Annotated[str, Option("--reason", help="Reason of --reject, sent to the model.")] = "",
    recover: Annotated[Recover, Option("--recover", help="What to do with interrupted calls.")] = Recover.ask,
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    timeout: Timeout = None,
    model: Model = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    no_stream: NoStream = False,
    workspace: Workspace = None,
    add_dir: AddDir = None,
    trust: Trust = False,
    db: Database = None,
) -> None:
    """Run one turn non-interactively; the exit code tells you how it ended."""
    from graph_agent.cli.startup import restore_signals, result_on_signal

    with result_on_signal(output.value, thread):
        from graph_agent.cli.headless.pending_answers import PendingAnswers
        from graph_agent.cli.headless.run import RunRequest, run_headless
        from graph_agent.cli.log_file import log_to_file
        from graph_agent.cli.session_target import absolute_paths, open_target, resolve_target

        flags = {**_flags(model, mode, db, skip_permissions, no_stream, max_steps), "awaits_servers": True}
        flags |= {"trust": trust, "max_tokens": max_tokens, "max_cost": max_cost}
        flags["add_dirs"] = absolute_paths(add_dir)
        target = resolve_target(flags, workspace=workspace, thread=thread, resume=resume)
        text = _read_prompt(prompt, target, trusted_once=trust)
        answers = PendingAnswers(tuple(approve or ()), tuple(reject or ()), reason, recover.value)
        answers.require_pending_calls(may_exist=target.exists)
        request = RunRequest(text, output.value, answers, timeout, target.thread_id, resolve_database(db))
        import graph_agent.app.opening  # noqa: F401 - loaded before the event loop listens for signals

        log_to_file()
        _restore_ctrl_c()
        code = run_headless(request, lambda bus: open_target(target, bus), restore_signals)
    raise typer.Exit(code)


def demo(
    yes: Annotated[bool, Option("--yes", help="Answer the questions automatically.")] = False,
    keep: Annotated[bool, Option("--keep", help="Keep the files of the demo.")] = False,
) -> None:
    """Show an approval, kill -9 during a call, its recovery and a rewind. Offline, one minute, throwaway files."""
    from graph_agent.cli.demo.script import run_demo

    run_demo(is_asking=not yes, is_kept=keep)


def _flags(
    model: str | None,
    mode: str | None,
    db: str | None,
    skip_permissions: bool,
    no_stream: bool,
    max_steps: int | None,
) -> dict[str, object]:
    chosen = "bypassPermissions" if skip_permissions else mode
    return {"model": model, "mode": chosen, "db": db, "no_stream": no_stream, "max_steps": max_steps}


def _read_prompt(prompt: str | None, target: "Target", *, trusted_once: bool) -> str | None:
    from graph_agent.cli.chat.command_table import expand_command

    if prompt == "-":
        prompt = sys.stdin.read()
    if prompt is None and target.exists:
        return None
    if prompt is None or not prompt.strip():
        raise typer.BadParameter("No prompt. Give a PROMPT, - to read it from stdin, or --resume ID.")
    return expand_command(prompt, target.workspace, trusted_once=trusted_once)


def _open_chat(target: "Target", message: str | None) -> None:
    from graph_agent.cli.chat.start import open_chat

    _restore_ctrl_c()
    raise typer.Exit(open_chat(target, message))


def _restore_ctrl_c() -> None:
    """Replace the startup handler, which ends the process at once: Ctrl-C asks a session to stop."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
