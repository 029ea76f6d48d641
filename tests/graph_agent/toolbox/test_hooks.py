import json
from pathlib import Path
from typing import Any

import pytest

from graph_agent.calls import ToolCallInfo
from graph_agent.config.redaction import Redactor
from graph_agent.config.settings import HookSettings
from graph_agent.errors import MessageBlocked
from graph_agent.ports import Outcome, PreparedCall, Scope
from graph_agent.toolbox.hooks import CommandHooks
from tests.fakes.toolbox_world import call_of

SCOPE = Scope("t1", "plan", "/w/inner")


class Hooked:
    def __init__(self, folder: Path, **hooks: list[dict[str, Any]]) -> None:
        self.warned: list[str] = []
        settings = HookSettings.model_validate(hooks)
        self.hooks = CommandHooks(settings, folder, self.warned.append, Redactor(["sk-very-secret"]))

    async def before(self, tool: str = "bash") -> str:
        return await self.hooks.before(_call(tool), SCOPE)

    async def after(self) -> str:
        return await self.hooks.after(_call("bash"), Outcome("error", "half", "it broke"), SCOPE)


def _call(tool: str) -> ToolCallInfo:
    return call_of(tool, {"command": "make"})


async def test_a_hook_gets_the_call_as_json_and_allows_it_by_exit_code_0(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, before_tool=[{"command": "cat > before"}], after_tool=[{"command": "cat > after"}])

    objections = (await hooked.before(), await hooked.after(), hooked.warned)

    common = {
        "hook_event_name": "before_tool",
        "workspace": str(tmp_path),
        "cwd": "/w/inner",
        "thread_id": "t1",
        "mode": "plan",
        "call_id": "c1",
        "attempt": 2,
        "risk": "medium",
        "risk_reason": "",
        "tool_name": "bash",
        "tool_input": {"command": "make"},
    }
    response = {"status": "error", "output": "half", "error": "it broke"}
    assert objections == ("", "", [])
    assert json.loads((tmp_path / "before").read_text()) == common
    assert json.loads((tmp_path / "after").read_text()) == {
        **common,
        "hook_event_name": "after_tool",
        "tool_response": response,
    }


async def test_exit_code_2_blocks_with_its_reason_and_runs_no_further_hook(tmp_path: Path) -> None:
    hooks = [{"command": "echo 'not sk-very-secret' >&2; exit 2"}, {"command": "touch second"}]

    blocked = await Hooked(tmp_path, before_tool=hooks).before()

    assert blocked == "blocked by the hook \"echo 'not sk-very-secret' >&2; exit 2\": not **************"
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    ("tool", "is_matched"),
    [("bash", False), ("write_file", True), ("mcp__hub__ping", True), ("overwrite_file", False)],
)
async def test_a_hook_runs_for_the_tools_its_matcher_names(tmp_path: Path, tool: str, is_matched: bool) -> None:
    hooked = Hooked(tmp_path, before_tool=[{"matcher": "Write_File | mcp__*", "command": "exit 2"}])

    assert bool(await hooked.before(tool)) == is_matched


async def test_a_failed_hook_is_reported_and_blocks_only_if_it_is_set_to(tmp_path: Path) -> None:
    failing = {"command": "./gone.sh", "timeout": 5}
    slow = {"command": "sleep 20", "timeout": 0.2, "on_failure": "block"}
    hooked = Hooked(tmp_path, before_tool=[failing, slow])

    blocked = await hooked.before()

    assert blocked == "blocked, because the hook 'sleep 20' failed: it did not end within 0.2 s"
    [warned] = hooked.warned
    assert warned.startswith("hook before_tool './gone.sh' failed, the call runs anyway: exit code 127: ")


async def test_after_a_call_exit_code_2_addresses_the_model_and_a_failure_only_the_user(tmp_path: Path) -> None:
    hooks = [{"command": "exit 1"}, {"command": "echo lint >&2; exit 2"}, {"command": "exit 2"}]
    hooked = Hooked(tmp_path, after_tool=hooks)

    assert await hooked.after() == (
        "[The hook 'echo lint >&2; exit 2' says: lint]\n[The hook 'exit 2' says: it objected and gave no reason]"
    )
    assert hooked.warned == ["hook after_tool 'exit 1' failed, the result is kept: exit code 1"]


async def test_a_folder_that_is_gone_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path / "gone", turn_end=[{"command": "true"}])

    await hooked.hooks.turn_ended("t1", "done", "all well")

    [warned] = hooked.warned
    assert warned.startswith("hook turn_end 'true' failed: it could not be started (")


async def test_stdout_of_a_session_start_hook_is_for_the_model(tmp_path: Path) -> None:
    hooked = Hooked(
        tmp_path,
        session_start=[
            {"command": "cat > started; echo on main"},
            {"command": "echo not this", "matcher": "resume"},
            {"command": "echo nor this; exit 3"},
        ],
    )

    said = await hooked.hooks.session_started("t1", "startup", "plan")

    assert said == "[The hook 'cat > started; echo on main' says: on main]"
    assert hooked.warned == ["hook session_start 'echo nor this; exit 3' failed: exit code 3"]
    assert json.loads((tmp_path / "started").read_text()) == {
        "hook_event_name": "session_start",
        "workspace": str(tmp_path),
        "cwd": str(tmp_path),
        "thread_id": "t1",
        "source": "startup",
        "mode": "plan",
    }


async def test_a_hook_reads_each_message_and_adds_its_stdout(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, user_prompt=[{"command": "cat > read; echo sk-very-secret"}, {"command": "exit 1"}])

    said = await hooked.hooks.message_submitted("t1", "hello", "plan")

    assert hooked.hooks.has_message_hooks
    assert said == "[The hook 'cat > read; echo sk-very-secret' says: **************]"
    assert json.loads((tmp_path / "read").read_text())["prompt"] == "hello"
    assert hooked.warned == ["hook user_prompt 'exit 1' failed, the message is sent: exit code 1"]


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"command": "echo no >&2; exit 2"}, "blocked by the hook 'echo no >&2; exit 2': no"),
        ({"command": "exit 1", "on_failure": "block"}, "because the hook 'exit 1' failed: exit code 1"),
    ],
)
async def test_a_hook_may_block_a_message(tmp_path: Path, hook: dict[str, Any], words: str) -> None:
    hooked = Hooked(tmp_path, user_prompt=[hook, {"command": "touch second"}])

    with pytest.raises(MessageBlocked, match="the message is not sent, ") as refusal:
        await hooked.hooks.message_submitted("t1", "hello", "plan")

    assert str(refusal.value).endswith(words)
    assert not (tmp_path / "second").exists()


_REQUESTED = PreparedCall("bash", {"command": "npm"}, "ask")
_PNPM = """echo '{"arguments": {"command": "pnpm"}}'"""


@pytest.mark.parametrize(
    ("hooks", "command", "changed_by", "said"),
    [
        ([_PNPM], "pnpm", f"the hook {_PNPM!r}", ""),
        (["true"], "npm", "", ""),
        (["echo '{}'"], "npm", "", ""),
        ([_PNPM.replace("pnpm", "npm")], "npm", "", ""),
        ([_PNPM, "grep -q pnpm || exit 1"], "pnpm", f"the hook {_PNPM!r}", ""),
        (["echo no"], "npm", "", "the call is left as it is: its output is no JSON"),
        (["echo '{\"arguments\": 1}'"], "npm", "", 'its output is not {"arguments": {...}}'),
        (['echo \'{"arguments": {}, "allow": 1}\''], "npm", "", 'its output is not {"arguments": {...}}'),
        ([f"{_PNPM}; exit 1"], "npm", "", "failed, the call is left as it is: exit code 1"),
        (["echo no >&2; exit 2", _PNPM], "npm", "", "blocked by the hook 'echo no >&2; exit 2': no"),
    ],
)
async def test_a_hook_may_change_the_arguments_of_a_requested_call(
    tmp_path: Path, hooks: list[str], command: str, changed_by: str, said: str
) -> None:
    hooked = Hooked(tmp_path, before_call=[{"matcher": "ba*", "command": one} for one in hooks])

    got = await hooked.hooks.call_requested(_REQUESTED, SCOPE, "c1", 1)

    assert (got.arguments, got.changed_by) == ({"command": command}, changed_by)
    assert said in "".join([*hooked.warned, got.objection])
    assert bool([*hooked.warned, got.objection] != [""]) == bool(said)


async def test_a_failed_hook_for_requested_calls_blocks_if_it_is_set_to(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, before_call=[{"command": "echo no", "on_failure": "block"}])

    got = await hooked.hooks.call_requested(_REQUESTED, SCOPE, "c1", 1)

    assert got.objection.startswith("blocked, because the hook 'echo no' failed: its output is no JSON")


async def test_a_hook_sees_the_answer_to_an_approval(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, approval=[{"command": "cat > seen; exit 2"}])
    answer = {"kind": "reject", "decided_by": "pid 7", "reason": "not now", "args_digest": "x"}

    await hooked.hooks.approval_answered(_call("bash"), answer, SCOPE)

    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["hook_event_name"], seen["tool_name"], seen["call_id"]) == ("approval", "bash", "c1")
    assert seen["answer"] == {"kind": "reject", "decided_by": "pid 7", "reason": "not now"}
    assert hooked.warned == ["hook approval 'cat > seen; exit 2' failed: exit code 2"]
