"""The steps of the demo: a question that outlives its process, a kill inside a call, what the next process knows.

Every claim it makes is one that the commands between the lines show; nothing here is played but who answers.

Tells what is to be seen and takes the answers: from the person at the terminal, or by itself where none is.

Knows nothing of the commands in between.

One demo from beginning to end: makes its place, tells its story, and leaves nothing behind.
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

__all__ = ["DemoNarrator", "run_demo", "run_steps"]

_WIDTH = 80


class DemoNarrator:
    """Speaks to whoever watches."""

    def __init__(self, *, is_asking: bool) -> None:
        self._is_asking = is_asking

    def title(self, text: str) -> None:
        """Begin a step; a person says when."""
        if self._is_asking:
            self._line("\n[Enter] goes on > ")
        print_lines(["", *(colorize(line, "found") for line in _wrapped(text))])

    def say(self, text: str) -> None:
        """A remark on what was just seen, or comes next."""
        print_lines(["", *(colorize(line, "running") for line in _wrapped(text))])

    def choose(self, question: str, keys: Mapping[str, str], by_itself: str) -> str:
        """The key of an answer; where nobody is asked, the one named for that."""
        offered = "  ".join(keys.values())
        self.say(question)
        if not self._is_asking:
            print_lines([f"{offered} > {by_itself}"])
            return by_itself
        while (typed := self._line(f"{offered} > ").strip().lower()[:1]) not in keys:
            print_lines([f"Type {', '.join(list(keys)[:-1])} or {list(keys)[-1]}, then Enter."])
        return typed

    @staticmethod
    def _line(prompt: str) -> str:
        """A line from the keyboard; its end ends the demo."""
        if sys.stdin.isatty():  # What was typed before a question is no answer to it.
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        sys.stdout.write(prompt)
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed:
            print_lines([""])
            raise typer.Exit(ExitCode.INTERRUPTED)
        return typed


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, min(line_width() or _WIDTH, _WIDTH), break_on_hyphens=False)


_PROMPT = f"replace open by paid in order.txt, then run sh {SCRIPT}"
_APPROVAL = {"y": "[y]es", "n": "[n]o"}
_RECOVERY = {"r": "[r]etry", "d": "[d]one", "c": "[c]ancel"}
_CHARGED = f"order 17 is charged: its line stands in {CHARGES}"


def run_steps(place: DemoWorkspace, children: DemoCommands, guide: DemoNarrator) -> None:
    """Play all of it.

    Raises:
        Unexpected: a command did not do what it is there to show.
    """
    beginning = _begin(children, guide)
    call = _ask(children, guide)
    if _approve(children, guide, call):
        before = _kill(place, children, guide)
        _recover(children, guide, call)
        _look(children, guide, before)
        _rewind(children, guide, beginning)
        guide.say("The order is open again. What the command did cannot be taken back, and the rewind said so.")
    else:
        _rewind(children, guide, beginning)
        guide.say("The order is open again.")


def _begin(children: DemoCommands, guide: DemoNarrator) -> str:
    """The first turn; returns the checkpoint at its end."""
    guide.title("1/6  A turn. What only reads runs by itself.")
    children.run("run", "--thread", "demo", "read order.txt")
    return str(children.read("inspect", "demo")["checkpoint_id"])


def _ask(children: DemoCommands, guide: DemoNarrator) -> str:
    """The turn that stops at a question; returns the id of the call that waits."""
    guide.title("2/6  A question. Changing a file is accepted here (acceptEdits); a shell command asks.")
    children.run("run", "--resume", "demo", "--mode", "acceptEdits", _PROMPT, ends_with=3)
    guide.say("That process has ended. Its question has not: any other process may list and answer it.")
    children.run("approvals", "list")
    [waiting] = children.read("approvals", "list")["approvals"]
    return str(waiting["call_id"])


def _approve(children: DemoCommands, guide: DemoNarrator, call: str) -> bool:
    question = f"The command charges a customer: {SCRIPT} adds a line to {CHARGES}, then waits. May it run?"
    if guide.choose(question, _APPROVAL, "y") == "y":
        children.run("approvals", "approve", _short(call))
        return True
    children.run("approvals", "reject", _short(call), "--reason", "not today")
    children.run("run", "--resume", "demo")
    children.run("calls", "demo")
    guide.say("Nothing ran, so there is nothing to kill: the call is cancelled, and the model was told why.")
    return False


def _kill(place: DemoWorkspace, children: DemoCommands, guide: DemoNarrator) -> str:
    """Kill the agent inside the call; returns the checkpoint it leaves."""
    guide.title("3/6  A kill. The agent goes on, and dies while the command runs.")
    children.run_and_kill("run", "--resume", "demo", once=place.is_in_the_middle)
    children.show(CHARGES)
    guide.say("The customer is charged, and nobody was left to write that down. What does the next process know?")
    children.run("calls", "demo")
    children.run("inspect", "demo")
    guide.say("It was approved, it began, how it ended is unknown: interrupted. It is not run again by itself.")
    return str(children.read("inspect", "demo")["checkpoint_id"])


def _recover(children: DemoCommands, guide: DemoNarrator, call: str) -> None:
    guide.title("4/6  The recovery. You decide, with all there is to know.")
    children.run("recover", "demo")
    key = guide.choose(
        f"A retry would charge again: {CHARGES} has the line. Done says it happened; cancel gives it up.",
        _RECOVERY,
        "d",
    )
    decision = {"r": ("--retry", _short(call)), "c": ("--cancel", _short(call))}
    match_choice = decision.get(key, ("--done", _short(call), "--result", _CHARGED))
    children.run("recover", "demo", *match_choice, *_ending(children))
    guide.say("The next process finds the call broken off, and does with it what you decided.")
    children.run("run", "--resume", "demo")
    children.show(CHARGES)
    guide.say(
        "Two lines: it ran twice, because you said so, and the ledger says attempt 2."
        if key == "r"
        else "One line: charged once. The model was told what you said."
    )


def _ending(children: DemoCommands) -> tuple[str, ...]:
    """Where no sandbox ends the command with its agent, it may still run."""
    calls = children.read("recover", "demo")["calls"]
    return ("--end-processes",) if any(call.get("processes") for call in calls) else ()


def _look(children: DemoCommands, guide: DemoNarrator, before: str) -> None:
    guide.title("5/6  The record. Every step is a checkpoint, and two of them can be compared.")
    children.run("calls", "demo")
    children.run("history", "demo", "--last", "8")
    children.run("diff", before[-8:], _decided_after(children, before)[-8:])
    guide.say("Minus: what the killed process wrote last. Plus: the same call after your decision.")


def _decided_after(children: DemoCommands, before: str) -> str:
    """The first checkpoint after this one in which an answer was taken."""
    listed: list[dict[str, Any]] = children.read("history", "demo")["checkpoints"]
    later = listed[: [one["checkpoint_id"] for one in listed].index(before)]
    for one in reversed(later):
        if one["node"] == "human_approval":
            return str(one["checkpoint_id"])
    raise DemoFailed("graph-agent history demo shows no checkpoint with the decision")


def _rewind(children: DemoCommands, guide: DemoNarrator, beginning: str) -> None:
    guide.title("6/6  Back. Conversation and files return together, here to the end of the first turn.")
    children.run("threads", "diff", "demo")
    children.run("rewind", beginning[-8:], "--yes")
    children.show("order.txt")


def _short(call: str) -> str:
    return call[-8:]


def run_demo(*, is_asking: bool, is_kept: bool) -> None:
    """Play it; somebody is asked only where both input and output are a terminal.

    Raises:
        Unexpected: a command did not do what it is there to show.
        UsageError: there is no place for the files.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Until here Ctrl-C ended the process at once.
    guide = DemoNarrator(is_asking=is_asking and sys.stdin.isatty() and sys.stdout.isatty())
    try:
        with demo_workspace(is_kept=is_kept) as place:
            guide.say(
                "graph-agent, killed and recovered: real commands, offline, on throwaway files. Their folder:"
            )
            print_lines([str(place.folder)])
            _play_in(place, guide)
    except (KeyboardInterrupt, typer.Exit):
        guide.say(f"Left early; its files are {'still there' if is_kept else 'gone'}.")
        raise
    if is_kept:
        guide.say("That was all. Its files are still there; to look on:")
        print_lines([f"GRAPH_AGENT_HOME={place.home} graph-agent inspect demo"])
    else:
        guide.say("That was all, and its files are gone. Your turn: graph-agent")


def _play_in(place: DemoWorkspace, guide: DemoNarrator) -> None:
    children = DemoCommands(place)
    try:
        run_steps(place, children, guide)
    finally:
        # What is left is to clean up, which takes seconds at most.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        children.end()
