from pathlib import Path

import pytest

from tests.graph_agent.cli.servers_scene import configure, mcp, settle


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def test_a_server_that_does_not_work_fails_its_test_with_the_reason(home: Path) -> None:
    (home / "config.toml").write_text("[mcp_servers.gone]\ncommand = 'no-such-program'\n")
    mcp("trust", "gone")

    tried = mcp("test", "gone")

    assert (tried.exit_code, "there is no program 'no-such-program'" in tried.stdout) == (1, True)


@pytest.mark.parametrize(("name", "said"), [("demo", "is not trusted"), ("other", "configured: demo")])
def test_what_is_not_trusted_or_not_there_is_not_started(home: Path, name: str, said: str) -> None:
    configure(home, "--trace", str(home / "trace"))

    refused = mcp("test", name)

    assert (said in str(refused.exception), (home / "trace").exists()) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "told"), [(("x", "npx", "-y"), True), (("--what", "x", "--", "npx", "-y"), False)]
)
def test_an_option_that_may_be_the_servers_is_answered_with_where_the_dashes_belong(
    arguments: tuple[str, ...], told: bool
) -> None:
    refused = mcp("add", *arguments)

    assert (refused.exit_code, "put -- before that command" in refused.output) == (2, told)
