"""Entry of `python -m graph_agent` and of the console script.

Takes the current folder off the import path before anything of ours is imported: a workspace may well have its own
`tools/` or `policy/` folder. Knows nothing of commands.
"""

import os
import sys

__all__ = ["main"]


def _leave_workspace() -> None:
    """Drop the current folder from the import path, unless it is where this program itself lives."""
    home = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))  # noqa: PTH100, PTH118, PTH120 - pathlib is not loaded yet
    here = os.path.realpath(os.getcwd()) if _has_folder() else ""  # noqa: PTH109 - as above
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here or here == home]


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - as above
    except FileNotFoundError:
        return False
    return True


def main() -> int:
    """Run the command line; returns its exit code."""
    _leave_workspace()
    if sys.argv[1:] == ["--version"]:  # answered before the command line is loaded: scripts ask for it often
        from graph_agent.cli.errors import run_guarded  # noqa: PLC0415 - only now is the path safe
        from graph_agent.cli.version import print_version  # noqa: PLC0415 - as above

        return run_guarded(print_version)
    import signal  # noqa: PLC0415 - as above

    # While modules are loaded nothing is at stake, and an exception would pass through code that is not ours.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from graph_agent.cli.startup import reduce_gc  # noqa: PLC0415 - as above

    reduce_gc()
    from graph_agent.cli.startup import parse_run_options, result_on_signal  # noqa: PLC0415 - as above

    with result_on_signal(*parse_run_options(sys.argv[1:])):
        from graph_agent.cli.main import main as run_command_line  # noqa: PLC0415 - as above
    return run_command_line()


if __name__ == "__main__":
    sys.exit(main())
