from pathlib import Path

import pytest

from graph_agent.toolbox.facts import PolicyContext, command_facts, format_command, with_command
from policy import CallFacts, PolicySettings
from tools.base import CommandTarget


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("ls -l", ["in      {ws}"]),
        ("git status && 'rm' x", ["runs    git status", "runs    rm x", "in      {ws}"]),
        (
            "echo $(id) > ../x",
            [
                "runs    echo $(id)",
                "runs    id",
                "writes  {up}/x  (not in the workspace)",
                "unclear it substitutes a command",
                "in      {ws}",
            ],
        ),
    ],
)
def test_a_command_is_told_as_it_was_understood(command: str, told: list[str], tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    bare = CallFacts("bash", "default", "high", "execute", ws)
    target = CommandTarget(command)
    facts = with_command(bare, command_facts(target, ws, PolicyContext(ws, PolicySettings())))

    assert facts.shell is not None
    expected = "\n".join(told).replace("{ws}", str(ws)).replace("{up}", str(ws.parent))
    assert format_command(facts, facts.shell) == expected
