import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graph_agent.ports import Scope
from tests.fakes.toolbox_world import World, call_of
from tools.base import (
    BaseTool,
    FileEffect,
    InterruptedCall,
    Preview,
    Reconciliation,
    Target,
    ToolContext,
    ToolDescription,
    ToolResult,
)


class _Args(BaseModel):
    at: str = ""
    """Where it misbehaves."""
    how: str = "sleeps"


class _Odd(BaseTool):
    """A tool of somebody else that hangs or leaves, when it is asked this or that."""

    name = "odd"
    description = "declared"
    args_schema = _Args

    def validate(self, args: Mapping[str, Any]) -> str | None:
        _act("validate", args)
        return None

    def is_read_only(self, args: Mapping[str, Any]) -> bool:
        _act("is_read_only", args)
        return False

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        _act("targets", args)
        return []

    def signature(self, args: Mapping[str, Any]) -> str:
        _act("signature", args)
        return ""

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:
        _act("preview", args)
        return Preview("text", "shown")

    async def predict_effect(
        self, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> FileEffect | None:
        _act("predict", args)
        return None

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        _act("reconcile", call.arguments)
        return Reconciliation("not_applied", "looked")

    async def execute(self, *, at: str = "", how: str = "") -> ToolResult:
        return ToolResult("done")


def _act(place: str, args: Mapping[str, Any]) -> None:
    if args.get("at") != place:
        return
    if args.get("how") == "leaves":
        raise SystemExit(7)
    time.sleep(4)  # twice the limit: as long as it, the two would race


class _Describing(_Odd):
    async def describe(self) -> str | ToolDescription:
        time.sleep(4)  # noqa: ASYNC251 - what such tools do
        return "computed"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.third_party.QUERY_TIMEOUT_S", 2)
    monkeypatch.setattr("tools.third_party._LOOP_TIMEOUT_S", 0.1)
    monkeypatch.setattr("tools.third_party._GRACE_S", 0.1)


@pytest.mark.parametrize("at", ["validate", "is_read_only", "targets", "signature", "preview"])
async def test_a_plug_in_that_hangs_or_leaves_while_its_call_is_planned_makes_it_unusable_and_halts_nothing(
    at: str, tmp_path: Path
) -> None:
    world = World(tmp_path, _Odd(), origin="plugin")
    hanging = asyncio.create_task(world.plan("odd", at=at))
    await asyncio.sleep(0.01)

    other = await world.plan("ls")
    leaves = await world.plan("odd", at=at, how="leaves")
    hangs = await hanging

    assert (other.verdict, leaves.verdict, hangs.verdict) == ("allow", "unusable", "unusable")
    assert leaves.reason == "odd failed when it was asked about this call: SystemExit: 7. Nothing was done."
    assert hangs.reason.startswith("odd did not answer about this call within 2 seconds")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sleeps", "leaves"])
async def test_a_plug_in_that_cannot_predict_its_effect_runs_and_one_that_cannot_reconcile_leaves_it_unknown(
    how: str, tmp_path: Path
) -> None:
    world = World(tmp_path, _Odd(), origin="plugin")
    predicting = call_of("odd", {"at": "predict", "how": how})
    looking = call_of("odd", {"at": "reconcile", "how": how})
    scope = Scope("t1", "default")

    intent = await world.box.record_intent(predicting, scope)
    outcome = await world.box.run(predicting, scope)
    finding = await world.box.reconcile(looking, None, scope)

    assert (intent, outcome.output, finding.verdict) == (None, "done", "unknown")


async def test_a_plug_in_that_takes_too_long_to_describe_itself_keeps_its_declared_description(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, _Describing(), origin="plugin")

    await world.box.load_descriptions()

    found = {
        item["function"]["name"]: item["function"]["description"] for item in world.box.declarations("default")
    }
    assert found["odd"] == "declared"
