import json
import os
from pathlib import Path

import pytest

from graph_agent.app.policy import CaseResult, EffectiveRule, Score, check_policy, effective_rules, run_policy_cases
from graph_agent.config.settings import PolicySettings, Settings
from graph_agent.config.sources import load_settings
from graph_agent.config.trust import trust_file
from graph_agent.errors import ConfigError, UsageError
from graph_agent.mcp.settings import fingerprint
from tests.fakes.mcp_servers import odd


async def test_a_report_says_how_the_call_was_understood(tmp_path: Path) -> None:
    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path / "home")})

    report = await check_policy("bash", {"command": "env rm a > b"}, settings, tmp_path.resolve())

    assert (report.decision, report.rule) == ("ask", "risk high")
    assert report.parsed["commands"] == ["env rm a"]
    assert "rm a" in report.parsed["also_runs"]
    assert report.parsed["writes"] == [
        {"given": "b", "resolved": str(tmp_path.resolve() / "b"), "access": "write", "inside": True}
    ]
    with pytest.raises(UsageError, match="command"):
        await check_policy("bash", {}, settings, tmp_path)


def test_rules_are_listed_in_the_order_of_evaluation_with_their_source(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[policy]\nallow = ["bash(ls*)"]\ndeny = [{rule = "bash(rm*)", match = ["rm"]}]\n')

    rules = effective_rules(load_settings({"GRAPH_AGENT_HOME": str(tmp_path)}))

    assert [one for one in rules if one.list] == [
        EffectiveRule("deny rules", "deny", "bash(rm*)", str(config)),
        EffectiveRule("allow rules", "allow", "bash(ls*)", str(config)),
    ]


async def test_a_rule_that_contradicts_its_examples_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[policy]\ndeny = [{rule = "bash(rm *)", match = ["rmdir x"]}]\n')
    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path)})

    with pytest.raises(
        ConfigError, match=r"table \[policy\]: the deny rule 'bash\(rm \*\)' does not cover 'rmdir x'"
    ):
        await check_policy("bash", {"command": "ls"}, settings, tmp_path)


@pytest.mark.slow
async def test_rules_for_a_servers_tool_may_use_each_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    rules = PolicySettings(allow=("mcp__my_data__now",), deny=("mcp__my data__a b",))
    servers = {"my data": odd(sandbox=False)}
    settings = Settings(database=tmp_path / "x.db", policy=rules, mcp_servers=servers)
    trust_file(os.environ).add_server("my data", fingerprint(servers["my data"]), "now")

    by_name = {
        name: (await check_policy(name, {}, settings, tmp_path)).rule
        for name in ("mcp__my_data__a_b", "mcp__My Data__a b", "mcp__my data__now", "mcp__my_data__any")
    }

    assert by_name == {
        "mcp__my_data__a_b": "deny mcp__my data__a b",
        "mcp__My Data__a b": "deny mcp__my data__a b",
        "mcp__my data__now": "allow mcp__my_data__now",
        "mcp__my_data__any": "risk high",
    }


_CASES = Path(__file__).parents[2] / "policy" / "labelled"


def _file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(_CASES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_every_labelled_case_is_decided_as_labelled(file: Path) -> None:
    scored, score = run_policy_cases(file)

    assert [one for one in scored if not one.is_right] == []
    assert score.cases > 0


def test_families_are_counted_by_how_their_cases_were_decided(tmp_path: Path) -> None:
    case = {"tool": "read", "args": {"path": "{WS}/README.md"}}
    path = _file(
        tmp_path,
        json.dumps({"id": "a-1", "expected": "allow", **case}),
        json.dumps({"id": "a-2", "expected": "ask", **case}),
        json.dumps({"id": "a-3", "expected": "deny", "tool": "read", "args": {"path": 7, "x": 1}}),
    )

    scored, score = run_policy_cases(path)

    assert scored[1] == CaseResult("a-2", "ask", "allow", "risk low", "read_file has low risk.")
    assert (scored[2].decision, scored[2].rule) == ("deny", "unusable arguments")
    assert score == Score(3, 2, 0, 1, {"a": {"right": 2, "stricter": 0, "looser": 1}})


@pytest.mark.parametrize("line", ["nonsense", "{}", '{"id": "a", "tool": "read", "args": {}, "expected": "maybe"}'])
def test_a_line_that_is_no_case_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 1"):
        run_policy_cases(_file(tmp_path, line))
