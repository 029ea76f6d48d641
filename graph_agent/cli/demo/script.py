"""The steps of the demo: an approval that outlives its process, a kill inside a call, and the recovery.

Everything it claims is shown by the commands between the lines; only the answers may be scripted.
"""

import signal
import sys
import termios
import textwrap
from collections.abc import Mapping
from typing import Any

import typer

from graph_agent.cli.demo.workspace import CHARGES, SCRIPT, DemoCommands, DemoFailed, DemoWorkspace, demo_workspace
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.views.table import colorize, line_width, print_lines
from graph_agent.config.paths import own_command

__all__ = ["DemoNarrator", "run_demo", "run_steps"]

_WIDTH = 80
_PROMPT = f"replace open by paid in order.txt, then run sh {SCRIPT}"
_APPROVAL = {"y": "[y]es", "n": "[n]o"}
_RECOVERY = {"r": "[r]etry", "d": "[d]one", "c": "[c]ancel"}
_CHARGED = f"order 17 is charged: its line is in {CHARGES}"


def run_demo(*, is_asking: bool, is_kept: bool) -> None:
    """Run the demo in a throwaway folder; it asks only where both input and output are a terminal.

    Raises:
        DemoFailed: a command did not do what it is there to show.
        UsageError: no temporary folder can be made.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Until here Ctrl-C ended the process at once.
    narrator = DemoNarrator(is_asking=is_asking and sys.stdin.isatty() and sys.stdout.isatty())
    try:
        with demo_workspace(is_kept=is_kept) as workspace:
            narrator.say("graph-agent, killed and recovered: real commands, offline, on throwaway files in")
            print_lines([str(workspace.folder)])
            commands = DemoCommands(workspace)
            try:
                run_steps(workspace, commands, narrator)
            finally:
                # Only the clean-up is left, which takes seconds at most.
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                commands.end()
    except (KeyboardInterrupt, typer.Exit):
        narrator.say(f"Left early; its files are {'still there' if is_kept else 'gone'}.")
        raise
    if is_kept:
        narrator.say("The demo is over. Its files are still there; to look at them:")
        print_lines([f"GRAPH_AGENT_HOME={workspace.home} {own_command()} inspect demo"])
    else:
        narrator.say(f"The demo is over and its files are gone. Your turn: {own_command()}")


class DemoNarrator:
    """Explains the steps, and asks the person at the terminal or answers for them."""

    def __init__(self, *, is_asking: bool) -> None:
        self._is_asking = is_asking

    def title(self, text: str) -> None:
        """Begin a step, when the person is ready."""
        if self._is_asking:
            self._read_line("\n[Enter] to continue > ")
        print_lines(["", *(colorize(line, "found") for line in _wrap(text))])

    def say(self, text: str) -> None:
        """Explain what was just shown, or comes next."""
        print_lines(["", *(colorize(line, "running") for line in _wrap(text))])

    def choose(self, question: str, keys: Mapping[str, str], default: str) -> str:
        """Ask for one of the keys; without a person the default is the answer."""
        keys_line = "  ".join(keys.values())
        self.say(question)
        if not self._is_asking:
            print_lines([f"{keys_line} > {default}"])
            return default
        while (typed := self._read_line(f"{keys_line} > ").strip().lower()[:1]) not in keys:
            print_lines([f"Type {', '.join(list(keys)[:-1])} or {list(keys)[-1]}, then Enter."])
        return typed

    @staticmethod
    def _read_line(prompt: str) -> str:
        """A line from the keyboard; the end of the input ends the demo."""
        if sys.stdin.isatty():  # Nothing typed before a question answers it.
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        sys.stdout.write(prompt)
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed:
            print_lines([""])
            raise typer.Exit(ExitCode.INTERRUPTED)
        return typed


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, min(line_width() or _WIDTH, _WIDTH), break_on_hyphens=False)


def run_steps(workspace: DemoWorkspace, commands: DemoCommands, narrator: DemoNarrator) -> None:
    """Run all steps.

    Raises:
        DemoFailed: a command did not do what it is there to show.
    """
    narrator.title("1/6  A turn. Reading needs no approval.")
    commands.run("run", "--thread", "demo", "read order.txt")
    first_end = str(commands.read("inspect", "demo")["checkpoint_id"])

    narrator.title("2/6  An approval. Edits are accepted in this mode (acceptEdits); a shell command asks.")
    commands.run("run", "--resume", "demo", "--mode", "acceptEdits", _PROMPT, exit_code=3)
    narrator.say("That process has ended, but its question is saved. Any other process can list and answer it.")
    commands.run("approvals", "list")
    [waiting] = commands.read("approvals", "list")["approvals"]
    call = str(waiting["call_id"])[-8:]
    question = f"The command charges a customer: {SCRIPT} adds a line to {CHARGES}, then waits. Run it?"
    if narrator.choose(question, _APPROVAL, "y") == "n":
        commands.run("approvals", "reject", call, "--reason", "not today")
        commands.run("run", "--resume", "demo")
        commands.run("calls", "demo")
        narrator.say("Nothing ran, so there is nothing to kill. The call is cancelled, and the model knows why.")
        _rewind(commands, narrator, first_end)
        narrator.say("The order is open again.")
        return
    commands.run("approvals", "approve", call)
    killed = _kill(workspace, commands, narrator)
    _recover(commands, narrator, call)
    narrator.title("5/6  The history. Every step is a checkpoint, and any two can be compared.")
    commands.run("calls", "demo")
    commands.run("history", "demo", "--last", "8")
    commands.run("diff", killed[-8:], _first_decision_after(commands, killed)[-8:])
    narrator.say("Minus: what the killed process saved last. Plus: the same call after your decision.")
    _rewind(commands, narrator, first_end)
    narrator.say("The order is open again. The command's own effect cannot be undone, and the rewind said so.")


def _kill(workspace: DemoWorkspace, commands: DemoCommands, narrator: DemoNarrator) -> str:
    """Kill the agent inside the call; returns the checkpoint it leaves."""
    narrator.title("3/6  A kill. The agent resumes, and dies while the command runs.")
    commands.run_and_kill("run", "--resume", "demo", once=workspace.is_charged)
    commands.show(CHARGES)
    narrator.say("The customer is charged, and nothing recorded that. What does the next process know?")
    commands.run("calls", "demo")
    commands.run("inspect", "demo")
    narrator.say("It was approved and started, and its outcome is unknown: interrupted. It is not run again.")
    return str(commands.read("inspect", "demo")["checkpoint_id"])


def _recover(commands: DemoCommands, narrator: DemoNarrator, call: str) -> None:
    narrator.title("4/6  The recovery. You decide, and see everything that is known.")
    commands.run("recover", "demo")
    key = narrator.choose(
        f"A retry would charge again: {CHARGES} has the line. Done: it happened. Cancel: give it up.",
        _RECOVERY,
        "d",
    )
    decision = {"r": ("--retry", call), "c": ("--cancel", call)}.get(key, ("--done", call, "--result", _CHARGED))
    # Where no sandbox ends the command with its agent, it may still run.
    calls = commands.read("recover", "demo")["calls"]
    ending = ("--end-processes",) if any(one.get("processes") for one in calls) else ()
    commands.run("recover", "demo", *decision, *ending)
    narrator.say("The next process finds the interrupted call and applies your decision.")
    commands.run("run", "--resume", "demo")
    commands.show(CHARGES)
    narrator.say(
        "Two lines: it ran twice, because you said so, and the call log says attempt 2."
        if key == "r"
        else "One line: charged once. The model received your decision."
    )


def _first_decision_after(commands: DemoCommands, checkpoint: str) -> str:
    """The first checkpoint after this one in which an answer was applied."""
    listed: list[dict[str, Any]] = commands.read("history", "demo")["checkpoints"]
    later = listed[: [one["checkpoint_id"] for one in listed].index(checkpoint)]
    for one in reversed(later):
        if one["node"] == "human_approval":
            return str(one["checkpoint_id"])
    raise DemoFailed("graph-agent history demo shows no checkpoint with the decision")


def _rewind(commands: DemoCommands, narrator: DemoNarrator, checkpoint: str) -> None:
    narrator.title("6/6  The rewind. Conversation and files return together to the end of the first turn.")
    commands.run("threads", "diff", "demo")
    commands.run("rewind", checkpoint[-8:], "--yes")
    commands.show("order.txt")
