from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts, kind_of
from policy import CallFacts, PathFact, PolicySettings
from tools.base import BaseTool, CommandTarget, HostTarget, PathTarget, Target, ToolKind, ToolRiskLevel
from tools.file_ops.write_file import WriteFileTool
from tools.paths import PathRefused
from tools.registry import Origin


class Fetcher(BaseTool):
    name = "fetcher"
    kind = ToolKind.READONLY
    risk_level = ToolRiskLevel.LOW

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [HostTarget("h:80")]


class Runner(BaseTool):
    name = "runner"

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [CommandTarget("a"), CommandTarget("b"), PathTarget("log", "write")]


class Sometimes(BaseTool):
    name = "sometimes"
    kind = ToolKind.READONLY

    def is_read_only(self, args: Mapping[str, Any]) -> bool:
        return not args.get("write")


def test_paths_are_resolved_and_told_with_what_policy_needs(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    setting = PolicyContext(ws, PolicySettings(reserved=(PurePath(ws.parent),)))

    facts = call_facts(
        WriteFileTool(), {"file_path": "../x"}, Scope("t", "plan", str(ws / "sub")), setting, "builtin"
    )

    assert facts == CallFacts(
        tool="write_file",
        mode="plan",
        risk="medium",
        kind="write",
        workspace=ws,
        allowed_in_plan_mode=False,
        cwd=ws / "sub",
        paths=(PathFact("../x", ws.parent / "x", "write", inside=False, reserved=True),),
        command=None,
        signature="../x",
    )


def test_a_foreign_tool_has_at_least_medium_risk_and_a_host_is_its_signature(tmp_path: Path) -> None:
    setting = PolicyContext(tmp_path.resolve(), PolicySettings())

    facts = call_facts(Fetcher(), {}, Scope("t", "default"), setting, "mcp")

    assert (facts.risk, facts.signature, facts.allowed_in_plan_mode) == ("medium", "h:80", True)


@pytest.mark.parametrize(("origin", "risk"), [("mcp", "low"), ("plugin", "medium"), (None, "medium")])
def test_the_risk_the_user_set_for_a_server_lowers_its_tools_and_no_plug_in_can_claim_it(
    tmp_path: Path, origin: Origin | None, risk: str
) -> None:
    tool = Fetcher()
    tool.risk_is_configured = True

    facts = call_facts(tool, {}, Scope("t", "default"), PolicyContext(tmp_path.resolve(), PolicySettings()), origin)

    assert facts.risk == risk


def test_several_commands_are_judged_as_one_text(tmp_path: Path) -> None:
    facts = call_facts(
        Runner(), {}, Scope("t", "default"), PolicyContext(tmp_path.resolve(), PolicySettings()), "builtin"
    )

    assert (facts.command, [path.given for path in facts.paths]) == ("a\nb", ["log"])


def test_a_path_that_cannot_be_resolved_is_refused(tmp_path: Path) -> None:
    setting = PolicyContext(tmp_path.resolve(), PolicySettings())

    with pytest.raises(PathRefused):
        call_facts(WriteFileTool(), {"file_path": "a\0"}, Scope("t", "default"), setting, "builtin")


def test_the_kind_depends_on_the_arguments() -> None:
    assert [kind_of(Sometimes(), {"write": write}) for write in (False, True)] == ["readonly", "execute"]
