"""Asks yes or no on a command's own input, where no chat is: anything but yes is no."""

import sys

from graph_agent.errors import UsageError

__all__ = ["agreed"]


def agreed(question: str, *, otherwise: str) -> bool:
    """Whether the answer is yes.

    Raises:
        UsageError: nobody is there to answer; the message ends with `otherwise`, the way to do without.
    """
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        sys.stdout.write("\n")
        raise UsageError(f"nobody answered, so nothing was changed; {otherwise}")
    return answer.strip().lower() in ("y", "yes")
