from pathlib import Path

import pytest

from graph_agent.app.policing import EffectiveRule, effective_rules, report_on
from graph_agent.config.load import load_settings
from graph_agent.errors import ConfigError, UsageError


def test_a_report_says_how_the_call_was_understood(tmp_path: Path) -> None:
    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path / "home")})

    report = report_on("bash", {"command": "env rm a > b"}, settings, tmp_path.resolve())

    assert (report.decision, report.rule) == ("ask", "risk high")
    assert report.parsed["commands"] == ["env rm a"]
    assert "rm a" in report.parsed["also_runs"]
    assert report.parsed["writes"] == [
        {"given": "b", "resolved": str(tmp_path.resolve() / "b"), "access": "write", "inside": True}
    ]


def test_wrong_arguments_are_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="command"):
        report_on("bash", {}, load_settings({"GRAPH_AGENT_HOME": str(tmp_path)}), tmp_path)


def test_rules_are_listed_in_the_order_of_judgement_with_their_source(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[policy]\nallow = ["bash(ls*)"]\ndeny = [{rule = "bash(rm*)", match = ["rm"]}]\n')

    rules = effective_rules(load_settings({"GRAPH_AGENT_HOME": str(tmp_path)}))

    assert [one for one in rules if one.list] == [
        EffectiveRule("deny rules", "deny", "bash(rm*)", str(config)),
        EffectiveRule("allow rules", "allow", "bash(ls*)", str(config)),
    ]


def test_a_rule_that_does_not_mean_what_its_examples_say_judges_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[policy]\ndeny = [{rule = "bash(rm *)", match = ["rmdir x"]}]\n')
    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path)})

    with pytest.raises(
        ConfigError, match=r"table \[policy\]: the deny rule 'bash\(rm \*\)' does not cover 'rmdir x'"
    ):
        report_on("bash", {"command": "ls"}, settings, tmp_path)
