import asyncio
from pathlib import Path

import pytest

from tests.fakes.waiting import is_running, until
from tools.shell_ops.user_command import UserCommandResult, run_user_command


@pytest.mark.parametrize(
    ("command", "text", "captures", "expected"),
    [
        (
            "cat > got; echo out; printf '\\033[31mno\\n' >&2; exit 2",
            "ü" * 100_000,
            False,
            UserCommandResult(2, "no"),
        ),
        ("cat > got; printf '\\033[31mout\\n'; echo no >&2", "in", True, UserCommandResult(0, "no", stdout="out")),
        ("kill -9 $$", "x" * 1_000_000, False, UserCommandResult(-9)),
    ],
    ids=["stderr", "stdout", "unread-input"],
)
async def test_the_text_is_its_stdin_and_the_beginning_of_its_output_is_kept(
    tmp_path: Path, command: str, text: str, expected: UserCommandResult, *, captures: bool
) -> None:
    (tmp_path / "got").write_text(text)

    assert await run_user_command(command, text, tmp_path, 20, stdout_bytes=8192 if captures else 0) == expected
    assert (tmp_path / "got").read_text() == text


@pytest.mark.slow
async def test_at_its_time_limit_it_is_ended_with_all_it_started(tmp_path: Path) -> None:
    ended = await run_user_command("(sleep 0.7; touch late) & sleep 30", "", tmp_path, 0.2)

    await asyncio.sleep(0.7)
    assert ended == UserCommandResult(None, "", "timeout")
    assert not (tmp_path / "late").exists()


async def test_a_command_over_the_output_limit_is_ended(tmp_path: Path) -> None:
    ended = await run_user_command("yes >&2", "", tmp_path, 30)
    heard = await run_user_command("yes", "", tmp_path, 30, stdout_bytes=8192)

    assert (ended.exit_code, ended.stopped, len(ended.stderr) <= 8192) == (None, "output_limit", True)
    assert (heard.stopped, len(heard.stdout) <= 8192) == ("output_limit", True)


async def test_a_cancellation_ends_it(tmp_path: Path) -> None:
    running = asyncio.create_task(run_user_command("echo $$ > pid; sleep 60", "", tmp_path, 60))
    await until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_running(int((tmp_path / "pid").read_text()))


async def test_no_key_of_the_agent_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-hooks")
    monkeypatch.setenv("DISPLAY", ":7")

    await run_user_command("env > seen", "", tmp_path, 20)

    seen = (tmp_path / "seen").read_text()
    assert ("sk-not-for-hooks" in seen, "DISPLAY=:7\n" in seen) == (False, True)
