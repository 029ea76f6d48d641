import json
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.scenarios.days_work import CHANGED, NEW, OLD, REPLIES, DaysWork


@pytest.mark.timeout(120)
def test_three_files_are_changed_and_tested_in_the_chat_across_a_kill(tmp_path: Path) -> None:
    with FakeOpenAI(REPLIES, strict=True, by_history=True) as server:
        work = DaysWork(tmp_path, server)
        killed = work.until_killed()
        resumed = work.resumed()
        calls = json.loads(work.command("calls", "rename", "--json").stdout)["calls"]

    assert (killed.ended, resumed.ended, server.faults, len(server.bodies)) == (-9, 0, [], len(REPLIES))
    assert [(call["tool_name"], call["status"], call["attempt"]) for call in calls] == [
        ("grep", "success", 1),
        ("read_file", "success", 1),
        *[("edit_file", "success", 1)] * 3,
        ("bash", "success", 2),
    ]
    assert work.git("diff", "--name-only") == sorted(CHANGED)
    changed = [line[1:] for line in work.git("diff", "-U0") if line.startswith("-") and not line.startswith("---")]
    added = [line[1:] for line in work.git("diff", "-U0") if line.startswith("+") and not line.startswith("+++")]
    assert added == [line.replace(OLD, NEW) for line in changed]
    assert "Ran 2 tests" in str(calls[-1]["result"])
    assert [path for path in CHANGED if OLD in (work.workspace / path).read_text()] == []
