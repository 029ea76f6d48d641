"""Makes the sandbox of a workspace out of settings, policy's protected names and the agent's own places."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from graph_agent.config.paths import own_places
from graph_agent.config.settings import Settings
from graph_agent.ports import Walls
from policy import PLACED_IN_PROJECTS, PROTECTED_FILES, PROTECTED_FOLDERS, is_protected
from tools.sandbox import Names, Sandbox, Terms
from tools.sandbox.keystores import key_stores
from tools.sandbox.looking import is_there

__all__ = ["sandbox_of", "walls_of"]

_NAMES = {"bubblewrap": "bubblewrap", "landlock": "Landlock"}


def sandbox_of(settings: Settings, workspace: Path, more_roots: Sequence[Path] = ()) -> Sandbox | None:
    """The sandbox that commands in this workspace are run in; None where the user wants none."""
    if settings.sandbox == "off":
        return None
    home = Path.home()
    own = tuple(Path(name).expanduser().resolve() for name in settings.sandbox_write)
    terms = Terms(
        writable=tuple(dict.fromkeys((workspace.resolve(), *more_roots, *own))),
        network=settings.sandbox_network,
        hidden=(*key_stores(home, os.environ), *own_places(os.environ, settings.database)),
        names=_names(at_home=workspace.resolve() == home.resolve()),
        visible=(home.resolve(), *_programs()),
    )
    return Sandbox(terms, is_required=settings.sandbox == "required")


def walls_of(sandbox: Sandbox | None) -> Walls:
    """What there is to say of it here and now. The first look in a process takes some milliseconds."""
    if sandbox is None:
        return Walls("off", "the setting sandbox is off: commands run with all your rights")
    means = sandbox.means
    if means.kind != "none":
        return Walls(_NAMES[means.kind], sandbox.limits, stands=True)
    then = "no command is run" if sandbox.is_required else "commands run with all your rights"
    return Walls("none", f"{means.why}; {then}")


def _names(*, at_home: bool) -> Names:
    """In a project only what is looked for there gets a placeholder: in a listing each one is in the way.

    What a `*` meets gets none anywhere: `grep x *` and `cat *` would fail at it.
    """
    every = PROTECTED_FOLDERS | PROTECTED_FILES
    placed = {name for name in every if name.startswith(".")} if at_home else PLACED_IN_PROJECTS
    folders, files = PROTECTED_FOLDERS & placed, PROTECTED_FILES & placed
    return Names(is_protected, *(tuple(sorted(names)) for names in (folders, files, every - placed)))


def _programs() -> Iterator[Path]:
    """Where programs are looked for; of a virtual environment all of it."""
    for name in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if folder.is_absolute():
            yield (folder.parent if is_there(folder.parent / "pyvenv.cfg") else folder).resolve()
