from pathlib import PurePath

import pytest

from policy import is_reserved
from policy.chain import mentioned_reserved_path

_WORKSPACE = PurePath("/home/u/proj")
_RESERVED = (PurePath("/home/u/.config/graph-agent"), PurePath("/home/u/.local/share/graph-agent"))
_MEMORY = (PurePath("/home/u/.config/graph-agent/CONTEXT.md"),)


@pytest.mark.parametrize(
    ("path", "reserved"),
    [
        ("/home/u/.config/graph-agent", True),
        ("/home/u/.config/graph-agent/config.toml", True),
        ("/home/u/.local/share/graph-agent/graph-agent.db", True),
        ("/home/u/.config/graph-agent/CONTEXT.md", False),
        ("/home/u/.config/graph-agent-other/x", False),
        ("/home/u/proj/a", False),
    ],
)
def test_the_agents_own_places_are_reserved_except_its_memory(path: str, reserved: bool) -> None:
    assert is_reserved(PurePath(path), _WORKSPACE, _RESERVED, _MEMORY) is reserved


def test_a_workspace_inside_a_reserved_place_is_usable_and_nothing_around_it() -> None:
    reserved = (PurePath("/data"), PurePath("/data/ws/agent.db"))
    workspace = PurePath("/data/ws")

    assert not is_reserved(PurePath("/data/ws/a"), workspace, reserved)
    assert is_reserved(PurePath("/data/agent.db"), workspace, reserved)
    assert is_reserved(PurePath("/data/ws/agent.db"), workspace, reserved)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat /home/u/.config/graph-agent/config.toml", "/home/u/.config/graph-agent"),
        ("cat ~/.config/graph-agent/config.toml", "/home/u/.config/graph-agent"),
        ("rm -r $HOME/.local/share/graph-agent", "/home/u/.local/share/graph-agent"),
        ("ls ~/.config/graph-agent-other", ""),
        ("pip install graph-agent", ""),
    ],
)
def test_a_command_that_names_a_reserved_place_is_found(command: str, named: str) -> None:
    assert mentioned_reserved_path(command, _WORKSPACE, _RESERVED) == named
