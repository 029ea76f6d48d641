"""One demo from beginning to end: makes its place, tells its story, and leaves nothing behind."""

import signal
import sys

import typer

from graph_agent.cli.tour.children import Children
from graph_agent.cli.tour.guide import Guide
from graph_agent.cli.tour.place import Place, made_place
from graph_agent.cli.tour.story import tell_story
from graph_agent.cli.views.screen import print_lines

__all__ = ["play"]


def play(*, is_asking: bool, is_kept: bool) -> None:
    """Play it; somebody is asked only where both input and output are a terminal.

    Raises:
        Unexpected: a command did not do what it is there to show.
        UsageError: there is no place for the files.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Until here Ctrl-C ended the process at once.
    guide = Guide(is_asking=is_asking and sys.stdin.isatty() and sys.stdout.isatty())
    try:
        with made_place(is_kept=is_kept) as place:
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


def _play_in(place: Place, guide: Guide) -> None:
    children = Children(place)
    try:
        tell_story(place, children, guide)
    finally:
        # What is left is to clean up, which takes seconds at most.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        children.end()
