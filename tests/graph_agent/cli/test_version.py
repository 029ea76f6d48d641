from importlib.metadata import version

import pytest

from graph_agent.cli.version import print_version


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert (print_version(), capsys.readouterr().out) == (0, f"graph-agent {version('graph-agent')}\n")
