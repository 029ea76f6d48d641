"""The commands that run a session: `chat`, `resume`, `run`, `acp`, `web` and `demo`. Each loads its own modules."""

import os
import select
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Option

from graph_agent.cli.arguments import is_piped_input, read_stdin
from graph_agent.cli.options import Database, resolve_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from graph_agent.cli.headless.pending_answers import PendingAnswers
    from graph_agent.cli.session_target import Target


__all__ = ["InputFormat", "Output", "Recover", "acp", "chat", "demo", "resume", "run", "web"]

_PIPE_SECONDS = 3
"""How long the prompt of `--print` waits for the first byte of piped input."""


class Output(StrEnum):
    """Output formats of `run`."""

    text = "text"
    json = "json"
    stream = "stream-json"


class InputFormat(StrEnum):
    """What `run` reads from stdin."""

    text = "text"
    stream = "stream-json"


class Recover(StrEnum):
    """What `run` does with interrupted calls."""

    ask = "ask"
    retry_safe = "retry-safe"
    cancel = "cancel"


OutputOption = Annotated[Output, Option("--output", help="Output format.")]
InputOption = Annotated[
    InputFormat, Option("--input-format", help="stream-json: messages and answers follow on stdin.")
]
Submit = Annotated[
    bool, Option("--submit", help="Queue the prompt as a task for a worker, like `tasks add`, and exit.")
]
Model = Annotated[
    str | None, Option("-m", "--model", metavar="NAME", help="Model or profile. Default: the configured one.")
]
Effort = Annotated[
    str | None,
    Option("--effort", metavar="LEVEL", help="Reasoning effort: none, minimal, low, medium, high or xhigh."),
]
Notify = Annotated[
    str | None,
    Option("--notify", metavar="HOW", help="Also notify you: desktop, or the address of a webhook."),
]
Mode = Annotated[
    str | None,
    Option("--mode", metavar="MODE", help="default, acceptEdits, plan, auto, dontAsk or bypassPermissions."),
]
Bypass = Annotated[bool, Option("--dangerously-skip-permissions", help="Same as --mode bypassPermissions.")]
Workspace = Annotated[
    str | None, Option("--workspace", metavar="DIR", help="Working directory (moves the thread).")
]
Thread = Annotated[str | None, Option("--thread", metavar="ID", help="Thread to continue or create.")]
Continue = Annotated[bool, Option("-c", "--continue", help="Continue the newest thread of this folder.")]
Resume = Annotated[
    str | None,
    Option(
        "-r", "--resume", metavar="[ID]", help="Resume this thread or checkpoint. Default: the newest thread here."
    ),
]
Image = Annotated[
    list[str] | None, Option("-i", "--image", metavar="FILE", help="Attach an image to the prompt; repeatable.")
]
Agent = Annotated[
    str | None,
    Option("--agent", metavar="NAME", help="Agent that a new thread works as; see `agents list`."),
]
NoStream = Annotated[bool, Option("--no-stream", help="Disable streaming.")]
MaxSteps = Annotated[
    int | None, Option("--max-steps", min=1, metavar="N", help="Limit of model requests per turn.")
]
MaxTokens = Annotated[int | None, Option("--max-tokens", min=1, metavar="N", help="Limit of tokens per turn.")]
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
JsonSchema = Annotated[
    str | None, Option("--json-schema", metavar="FILE", help="JSON Schema that the final answer must fit.")
]
Trust = Annotated[bool, Option("--trust", help="Trust project config for this run only.")]
OwnWorktree = Annotated[
    bool, Option("--worktree", help="Work in a new git worktree and branch (new threads only).")
]
PipedInput = Annotated[bool, Option("--piped-input", hidden=True, help="Add what is piped in to the prompt.")]
KeepStopped = Annotated[
    bool, Option("--keep-stopped", hidden=True, help="Without a prompt, do not restart a turn that was stopped.")
]

_HEADLESS = {"awaits_servers": True, "notify_after": 0}


def chat(
    message: Annotated[str | None, Argument(help="First message.")] = None,
    *,
    thread: Thread = None,
    continues: Continue = False,
    resume: Resume = None,
    image: Image = None,
    agent: Agent = None,
    model: Model = None,
    effort: Effort = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    workspace: Workspace = None,
    worktree: OwnWorktree = False,
    add_dir: AddDir = None,
    db: Database = None,
    no_stream: NoStream = False,
    notify: Notify = None,
) -> None:
    """Start an interactive session; side effects need approval."""
    from graph_agent.cli.session_target import attach_files

    flags = {**_flags(model, effort, mode, db, skip_permissions, no_stream, notify=notify), "agent": agent}
    files = {"add_dirs": add_dir, "attached": image}
    resumed = _resumed_id(resume, continues)
    find = partial(_resolve, flags, files, workspace=workspace, thread=thread, resume=resumed)
    if not (image or worktree) and (thread, resumed) != (None, None):
        _open_chat(find, message, db)
    target = find()
    given = attach_files(message, target)
    if not worktree:
        _open_chat(target, given, db)
    placed = _in_worktree(target, message)
    _open_chat(placed, given, db, partial(_remove_unused_worktree, target.workspace, placed.workspace, db))


def resume(
    identifier: Annotated[
        str, Argument(metavar="[ID]", help="Thread or checkpoint id. Default: choose a thread of this folder.")
    ] = "",
    *,
    model: Model = None,
    effort: Effort = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    workspace: Workspace = None,
    add_dir: AddDir = None,
    db: Database = None,
    no_stream: NoStream = False,
    notify: Notify = None,
) -> None:
    """Resume a thread in the chat. Interrupted calls and pending approvals come first."""
    from graph_agent.cli.session_target import absolute_paths, resolve_target

    if not identifier and sys.stdin.isatty() and sys.stdout.isatty():
        from graph_agent.cli.prompts.dialogs import choose_thread

        identifier = choose_thread(resolve_database(db), Path(workspace or ".").expanduser().resolve())
    flags = _flags(model, effort, mode, db, skip_permissions, no_stream, notify=notify)
    flags["add_dirs"] = absolute_paths(add_dir)
    _open_chat(partial(resolve_target, flags, workspace=workspace, thread=None, resume=identifier), None, db)


def run(
    prompt: Annotated[str | None, Argument(help="The task; - reads it from stdin.")] = None,
    *,
    output: OutputOption = Output.text,
    input_format: InputOption = InputFormat.text,
    json_schema: JsonSchema = None,
    thread: Thread = None,
    continues: Continue = False,
    resume: Resume = None,
    image: Image = None,
    approve: Approve = None,
    reject: Reject = None,
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Reason of --reject, sent to the model.")] = "",
    recover: Annotated[Recover, Option("--recover", help="What to do with interrupted calls.")] = Recover.ask,
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    timeout: Timeout = None,
    agent: Agent = None,
    model: Model = None,
    effort: Effort = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    no_stream: NoStream = False,
    notify: Notify = None,
    workspace: Workspace = None,
    worktree: OwnWorktree = False,
    submit: Submit = False,
    add_dir: AddDir = None,
    trust: Trust = False,
    piped_input: PipedInput = False,
    keep_stopped: KeepStopped = False,
    db: Database = None,
) -> None:
    """Run one turn non-interactively; the exit code tells you how it ended."""
    from graph_agent.cli.startup import result_on_signal

    with result_on_signal(output.value, thread):
        flags = {**_flags(model, effort, mode, db, skip_permissions, no_stream, notify=notify), "agent": agent}
        flags |= {"max_steps": max_steps, "max_tokens": max_tokens, "max_cost": max_cost, "trust": trust}
        files, resumed = {"add_dirs": add_dir, "attached": image}, _resumed_id(resume, continues)
        target = _resolve(flags | _HEADLESS, files, workspace=workspace, thread=thread, resume=resumed)
        options = {"output": output.value, "timeout_seconds": timeout, "keeps_stopped": keep_stopped}
        reads_lines = options["reads_lines"] = input_format is InputFormat.stream
        given = _read_prompt(prompt, target, trust, piped_input, is_optional=reads_lines)
        if submit:
            return _submit(target, given, resolve_database(db), worktree, as_json=output is not Output.text)
        answers = _pending_answers(approve, reject, reason, recover, target)
        target = _in_worktree(target, given) if worktree else target
        raise typer.Exit(_run_to_the_end(target, given, answers, options, json_schema, db))


def _in_worktree(target: "Target", prompt: str | None) -> "Target":
    """The target with its workspace in a new worktree.

    Raises:
        BadParameter: the thread exists already.
        UsageError: there is no repository, or git refuses.
    """
    from graph_agent.cli.views.table import print_progress
    from graph_agent.config.sources import load_settings
    from graph_agent.config.trust import trust_file
    from graph_agent.worker.worktrees import branch_for, create_worktree, report_once

    if target.exists:
        raise typer.BadParameter(f"--worktree is for a new thread; {target.thread_id} works in {target.workspace}.")
    # A wrong value ends the command before anything is made.
    load_settings(os.environ, flags={"model.name": target.flags.get("model"), "mode": target.flags.get("mode")})
    trust, branch = trust_file(os.environ), branch_for(prompt or "chat")
    folder = create_worktree(target.workspace, branch, trust, report_once(print_progress))
    shown = min(str(folder), os.path.relpath(folder), key=len)
    print_progress(f"Working in {shown}")
    return replace(target, workspace=folder)


def _remove_unused_worktree(folder: Path, inside: Path, db: str | None) -> None:
    """Remove the worktree of a chat that was left without a message, if nothing in it was changed."""
    from graph_agent.cli.views.table import print_progress
    from graph_agent.config.trust import trust_file
    from graph_agent.errors import AgentError
    from graph_agent.worker.worktrees import remove_unused_worktree, report_once

    on_wait = report_once(print_progress)
    # If it cannot be removed now, `worktrees list` shows it.
    with suppress(AgentError, OSError):
        one = remove_unused_worktree(folder, inside, resolve_database(db), trust_file(os.environ), on_wait)
        if one is not None:
            print_progress(f"Removed the worktree {one.path} and its branch: nothing was done there.")


def _submit(target: "Target", prompt: str | None, database: Path, in_worktree: bool, *, as_json: bool) -> None:
    """Queue a run for a worker.

    Raises:
        BadParameter: the run names a thread.
    """
    from graph_agent.cli.session_target import attach_files
    from graph_agent.cli.views.tasks import add_task

    if target.exists or target.thread_id is not None:
        raise typer.BadParameter("--submit starts a new thread; it cannot be combined with --thread or --resume.")
    names = ("agent", "model", "effort", "mode", "max_steps", "max_tokens", "max_cost", "add_dirs", "notify")
    flags = {name: target.flags[name] for name in names if name in target.flags}
    text = attach_files(prompt, target) or ""
    add_task(database, text, str(target.workspace), flags, (None, 0), in_worktree=in_worktree, as_json=as_json)


def _pending_answers(
    approve: "Sequence[str] | None", reject: "Sequence[str] | None", reason: str, recover: Recover, target: "Target"
) -> "PendingAnswers":
    from graph_agent.cli.headless.pending_answers import PendingAnswers

    answers = PendingAnswers(tuple(approve or ()), tuple(reject or ()), reason, recover.value)
    answers.require_pending_calls(may_exist=target.exists)
    return answers


def _run_to_the_end(
    target: "Target",
    prompt: str | None,
    answers: "PendingAnswers",
    options: "Mapping[str, Any]",
    json_schema: str | None,
    db: str | None,
) -> int:
    import graph_agent.app.opening  # noqa: F401 - loaded before the event loop listens for signals
    from graph_agent.cli.headless.report import read_schema
    from graph_agent.cli.headless.run import RunRequest, run_headless
    from graph_agent.cli.log_file import log_to_file
    from graph_agent.cli.session_target import attach_files, open_target
    from graph_agent.cli.startup import restore_signals

    prompt = attach_files(prompt, target)
    if prompt is not None:
        # With a schema the turn sends more than the prompt; with lines of stdin another message may come first.
        is_sent_alone = json_schema is None and not options["reads_lines"]
        target = replace(target, flags={**target.flags, "prompt": prompt, "sends_prompt": is_sent_alone})
    request = RunRequest(
        prompt,
        answers=answers,
        thread_id=target.thread_id,
        database=resolve_database(db),
        schema=read_schema(json_schema) if json_schema else None,
        **options,
    )
    log_to_file()
    _restore_ctrl_c()
    return run_headless(request, lambda bus: open_target(target, bus), restore_signals, _leave)


def _leave(code: int) -> None:
    """End the process at once, without waiting for threads that still load modules. The report is complete."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def acp(
    *,
    model: Model = None,
    effort: Effort = None,
    mode: Mode = None,
    skip_permissions: Bypass = False,
    trust: Trust = False,
    db: Database = None,
) -> None:
    """Serve an editor on stdin and stdout with the Agent Client Protocol; see docs/editors.md."""
    from graph_agent.acp.server import AgentOptions, serve
    from graph_agent.cli.log_file import log_to_file
    from graph_agent.cli.startup import reserve_stdout, restore_gc
    from graph_agent.config.sources import load_settings

    # A wrong value is an error of the command line, not of the first session that an editor opens.
    load_settings(os.environ, flags={"model.name": model, "model.effort": effort, "mode": mode})
    log_to_file()
    given = {**_flags(model, effort, mode, None, skip_permissions, False, notify=None), "trust": trust}
    flags = {name: value for name, value in given.items() if value is not None and value is not False}
    number = serve(AgentOptions(resolve_database(db), flags, restore_gc), reserve_stdout())
    raise typer.Exit(128 + number if number else 0)


def demo(
    yes: Annotated[bool, Option("--yes", help="Answer the questions automatically.")] = False,
    keep: Annotated[bool, Option("--keep", help="Keep the files of the demo.")] = False,
) -> None:
    """Show an approval, kill -9 during a call, its recovery and a rewind. Offline, one minute, throwaway files."""
    from graph_agent.cli.demo.script import run_demo

    run_demo(is_asking=not yes, is_kept=keep)


def web(
    *,
    host: Annotated[str, Option("--host", metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, Option("--port", min=0, max=65535, metavar="PORT", help="Port; 0 is any free one.")
    ] = 7420,
    allow_remote: Annotated[
        bool, Option("--allow-remote", help="Allow an address that other machines reach, without encryption.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Option("--allow-host", metavar="NAME", help="Also answer to this host name, e.g. a proxy's; repeatable."),
    ] = None,
    read_only: Annotated[bool, Option("--read-only", help="Show everything, answer nothing.")] = False,
    run: Annotated[bool, Option("--run", help="Also continue threads here, after answers and messages.")] = False,
    db: Database = None,
) -> None:
    """Serve the web inbox and inspector: answer, watch and inspect threads in a browser. Ctrl-C ends it."""
    from graph_agent.errors import UsageError

    try:
        from graph_agent.web.server import WebOptions, serve
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"`graph-agent web` needs {missing.name}, which the extra web installs: pip install 'graph-agent[web]'"
        ) from None
    if read_only and run:
        raise typer.BadParameter("--read-only and --run exclude each other.")
    hosts = tuple(allow_host or ())
    options = WebOptions(resolve_database(db), host, port, allow_remote, hosts, read_only, run)

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    serve(options, say)


def _flags(
    model: str | None,
    effort: str | None,
    mode: str | None,
    db: str | None,
    skip_permissions: bool,
    no_stream: bool,
    *,
    notify: str | None,
) -> dict[str, object]:
    chosen = "bypassPermissions" if skip_permissions else mode
    given = {"model": model, "effort": effort, "mode": chosen, "db": db}
    return {**given, "no_stream": no_stream, "notify": notify}


def _resumed_id(resume: str | None, continues: bool) -> str | None:
    """What to resume; an empty text is the newest thread here."""
    if continues and resume:
        raise typer.BadParameter("--continue cannot be combined with --resume ID.")
    return "" if continues else resume


def _resolve(
    flags: "Mapping[str, object]",
    files: "Mapping[str, list[str] | None]",
    *,
    workspace: str | None,
    thread: str | None,
    resume: str | None,
) -> "Target":
    """The session that the options name; with an agent it must be a new thread."""
    from graph_agent.cli.session_target import absolute_paths, resolve_target

    paths = {name: absolute_paths(given) for name, given in files.items()}
    target = resolve_target({**flags, **paths}, workspace=workspace, thread=thread, resume=resume)
    if flags.get("agent") and target.exists:
        raise typer.BadParameter(
            f"--agent is for a new thread; {target.thread_id} keeps the agent that it was started with."
        )
    return target


def _read_prompt(
    prompt: str | None, target: "Target", trusted_once: bool, has_piped_input: bool, *, is_optional: bool
) -> str | None:
    """The prompt, expanded and with what is piped in; None for none, which must be allowed for a new thread."""
    from graph_agent.cli.chat.command_table import expand_command

    if is_optional and prompt in (None, "-"):
        return None
    if prompt == "-":
        prompt = read_stdin()
    if prompt is None and target.exists:
        return None
    if prompt is None or not prompt.strip():
        raise typer.BadParameter("No prompt. Give a PROMPT, - to read it from stdin, or --resume ID.")
    text = expand_command(prompt, target.workspace, trusted_once=trusted_once)
    piped = _read_piped() if has_piped_input else ""
    if not piped.strip():
        return text
    inner = piped.removesuffix("\n").replace("</stdin", "<\\/stdin")
    return f"{text}\n\n<stdin>\n{inner}\n</stdin>"


def _read_piped() -> str:
    """What is piped in; nothing if nothing comes in time, because an inherited pipe may never end."""
    if not is_piped_input():
        return ""
    if not select.select([sys.stdin], [], [], _PIPE_SECONDS)[0]:
        from graph_agent.cli.views.table import wrap_message

        note = f"Nothing was piped in within {_PIPE_SECONDS} s; the prompt is sent without piped input."
        text = f"graph-agent: {note} `graph-agent run -` waits for all of stdin."
        sys.stderr.write(f"{wrap_message(text)}\n")
        return ""
    return read_stdin()


def _open_chat(
    target: "Target | Callable[[], Target]",
    message: str | None,
    db: str | None,
    clean_up: "Callable[[], None]" = lambda: None,
) -> NoReturn:
    """Chat in a thread that is known, or in one that is looked up behind the prompt; then call `clean_up`."""
    from graph_agent.cli.chat.start import open_chat

    _restore_ctrl_c()
    raise typer.Exit(open_chat(target, message, db=db, clean_up=clean_up))


def _restore_ctrl_c() -> None:
    """Replace the startup handler, which ends the process at once: Ctrl-C asks a session to stop."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
