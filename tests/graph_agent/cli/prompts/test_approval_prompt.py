import asyncio
from pathlib import Path

import pytest

from graph_agent.cli.prompts.questions import StopTurn
from graph_agent.ports import Proposal, SandboxInfo
from tests.fakes.scripted_session import approval
from tests.graph_agent.cli.prompts.scene import KEYS, A, B, Scene, editor


async def test_stop_ends_the_asking(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)

    with pytest.raises(StopTurn):
        await scene.asked("y", "s")

    assert (scene.session.log, scene.answered) == ([("decide", "call-a", "approve", "")], {"call-a"})


async def test_always_shows_its_rules_and_stores_them_for_the_scope_that_was_chosen(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approval("call-a", "bash", {"command": "git status && rm -rf ./tmp"}))

    shown = await scene.asked("a", "x", "p")

    rules = ("bash(git status)", "bash(rm -rf ./tmp)")
    assert [line for line in shown if line.startswith("  │ ")] == [f"  │ {rule}" for rule in rules]
    assert shown.count("in this [t]hread, or Enter  in this [p]roject  everywhere, as this [u]ser  [b]ack > ") == 2
    assert scene.session.log == [("decide", "call-a", "approve", "", "always project", *rules)]


async def test_enter_alone_allows_always_in_this_thread(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)

    await scene.asked("a", "")

    assert scene.session.log == [("decide", "call-a", "approve", "", "always thread", "bash(echo a)")]


async def test_keys_typed_before_the_rules_were_shown_choose_no_scope(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, A).asked("a", "t")

    rule = shown.index("  │ bash(echo a)")
    assert "<dropped>" in shown[rule:]


async def test_going_back_from_always_stores_nothing_and_asks_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)

    await scene.asked("a", "b", "n")

    assert scene.session.log == [("decide", "call-a", "reject", "")]


async def test_a_call_of_which_no_rule_can_be_made_says_why_and_is_asked_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approval("call-a", "new_task", {"prompt": "x"}))

    shown = await scene.asked("a", "y")

    assert "This cannot be allowed always. It names no command." in shown
    assert scene.session.log == [("decide", "call-a", "approve", "")]


async def test_a_rule_for_a_whole_tool_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    scene.session.propose_grant = _whole_tool  # type: ignore[method-assign, assignment]  # proposes another rule

    shown = await scene.asked("a", "t")

    assert "  This allows every call of the tool, whatever its arguments." in shown


async def test_edited_arguments_are_shown_anew_with_their_change_and_asked_about_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, A)
    monkeypatch.setenv("VISUAL", editor(tmp_path, '{"command": "echo mine"}'))

    shown = await scene.asked("e", "y")

    again = shown[shown.index(KEYS) + 1 :]
    again = again[again.index("  command: echo mine") :]  # after a workspace that may take several lines
    assert [line for line in again if line.startswith("  ")] == [
        "  command: echo mine",
        "  These are your edited arguments, not the model's.",
        "  this would:",
        "  │ as edited",
    ]
    assert scene.session.log == [("decide", "call-a", "edit", "", '{"command": "echo mine"}')]


async def test_always_after_an_edit_is_about_the_edited_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, A)
    monkeypatch.setenv("VISUAL", editor(tmp_path, '{"command": "echo mine"}'))

    await scene.asked("e", "a", "u")

    assert scene.session.log == [
        ("decide", "call-a", "edit", "", '{"command": "echo mine"}', "always user", "bash(echo mine)")
    ]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("not json", "The edited text is not valid JSON"),
        ("[1]", "The arguments must be a JSON object, not list."),
        ('{"command": NaN}', "The edited text is not valid JSON: NaN is not a JSON number"),
        ('{"command": "echo a"}', "Nothing was changed."),
    ],
)
async def test_what_an_editor_leaves_unusable_is_said_and_the_question_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, said: str
) -> None:
    scene = Scene(tmp_path, A)
    monkeypatch.setenv("VISUAL", editor(tmp_path, left))

    shown = await scene.asked("e", "n")

    assert [line for line in shown if line.startswith(said)] != []
    assert (shown.count(KEYS), scene.session.log) == (2, [("decide", "call-a", "reject", "")])


async def test_edited_arguments_that_may_not_run_leave_the_question_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, A)
    scene.session.refusals["call-a"] = "the edited arguments were not taken: a rule denies them"
    monkeypatch.setenv("VISUAL", editor(tmp_path, '{"command": "rm x"}'))

    shown = await scene.asked("e", "y")

    assert "the edited arguments were not taken: a rule denies them" in shown
    assert scene.session.log == [("decide", "call-a", "approve", "")]


async def _whole_tool(*_: object) -> Proposal:
    return Proposal(("mcp__hub__search",))


async def _in_a_folder(*_: object) -> Proposal:
    return Proposal(("bash(rm -rf ./tmp)",), folder="sub\x1b[2J")


async def test_a_rule_that_holds_in_one_folder_says_which(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    scene.session.propose_grant = _in_a_folder  # type: ignore[method-assign, assignment]  # proposes another rule

    shown = await scene.asked("a", "t")

    assert any(line.startswith("Applies in sub\\x1b[2J in mode") for line in shown)


async def test_a_question_answered_while_its_scope_is_chosen_disappears_and_stores_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    asyncio.get_running_loop().call_later(0.1, scene.elsewhere.write_text, '{"call-a": "reject"}')

    shown = await scene.asked("a")

    assert (shown[-1], scene.session.log) == ("bash: answered by cli pid 99: no", [])


def _in_a_sandbox(scene: Scene) -> Scene:
    scene.session.sandbox = SandboxInfo("bubblewrap", "no network", is_active=True)
    return scene


_OUTSIDE_KEYS = KEYS.replace("[s]top", "[o]utside  [s]top")


async def test_a_command_may_be_let_out_of_the_sandbox_that_stands_and_only_this_one(tmp_path: Path) -> None:
    scene = _in_a_sandbox(Scene(tmp_path, A, approval("call-b", "write_file", {"content": "x"})))

    shown = await scene.asked("o", "o", "y")

    assert "  sandbox: bubblewrap: no network; o runs this command outside it" in shown
    assert [line for line in shown if "[o]utside" in line] == [_OUTSIDE_KEYS.replace("[s]top", "[all]  [s]top")]
    assert "Please answer with one of: y, a, e, n, r, s" in shown
    assert scene.session.log == [
        ("decide", "call-a", "approve", "", "outside"),
        ("decide", "call-b", "approve", ""),
    ]


async def test_what_was_edited_may_be_let_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _in_a_sandbox(Scene(tmp_path, A))
    monkeypatch.setenv("VISUAL", editor(tmp_path, '{"command": "echo mine"}'))

    await scene.asked("e", "outside")

    assert scene.session.log[-1] == ("decide", "call-a", "edit", "", '{"command": "echo mine"}', "outside")


@pytest.mark.parametrize("name", ["off", "none"])
async def test_where_no_sandbox_stands_nothing_is_let_out_of_one_and_it_is_said_so(
    tmp_path: Path, name: str
) -> None:
    scene = Scene(tmp_path, A)
    scene.session.sandbox = SandboxInfo(name, "commands run with all your rights")

    shown = await scene.asked("o", "y")

    assert KEYS in shown
    assert any(line.startswith("  sandbox: ") and "all your rights" in line for line in shown)
    assert scene.session.log == [("decide", "call-a", "approve", "")]


async def test_a_long_command_cannot_be_let_out_unread(tmp_path: Path) -> None:
    long = approval("call-a", "bash", {"command": "".join(f"echo {n}\n" for n in range(500))})
    scene = _in_a_sandbox(Scene(tmp_path, long))

    shown = await scene.asked("o", "m", "o")

    assert any(line.startswith("You have not seen all of it yet") for line in shown)
    assert scene.session.log == [("decide", "call-a", "approve", "", "outside")]
