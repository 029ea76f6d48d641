"""Entry of `python -m graph_agent` and of the console script.

The current folder is removed from the import path before the program is imported: a workspace may have its own
`tools/` or `policy/` folder. Imports are late for that reason.
"""

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; returns its exit code."""
    _remove_workspace_from_path()
    if sys.argv[1:] in (
        ["--version"],
        ["-V"],
    ):  # Answered before the command line is loaded: scripts ask for it often.
        from graph_agent.cli.exit_codes import run_guarded  # noqa: PLC0415 - only now is the path safe
        from graph_agent.cli.startup import print_version  # noqa: PLC0415 - as above

        return run_guarded(print_version)
    import signal  # noqa: PLC0415 - as above

    # Nothing is lost while modules are loaded, and an exception would pass through code of libraries.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    if asked := os.environ.get("_GRAPH_AGENT_COMPLETE"):
        from graph_agent.cli.completion import complete_id  # noqa: PLC0415 - as above

        if (lines := complete_id(asked, sys.argv[1:])) is not None:
            sys.stdout.write(lines)
            return 0
    from graph_agent.cli.startup import (  # noqa: PLC0415 - as above
        find_listing,
        forbid_reading_memory,
        parse_run_options,
        reduce_gc,
        result_on_signal,
    )

    reduce_gc()
    forbid_reading_memory()
    if listing := find_listing(sys.argv[1:]):
        from graph_agent.cli.exit_codes import run_guarded  # noqa: PLC0415 - as above

        return run_guarded(listing)
    with result_on_signal(*parse_run_options(sys.argv[1:])):
        from graph_agent.cli.main import main as run_command_line  # noqa: PLC0415 - as above
    return run_command_line()


def _remove_workspace_from_path() -> None:
    """Remove the current folder from the import path, unless the program itself is installed there."""
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib is not loaded yet
    except FileNotFoundError:
        here = ""
    program = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))  # noqa: PTH100, PTH118, PTH120 - as above
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here or here == program]


if __name__ == "__main__":
    sys.exit(main())
