import asyncio
import io
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from graph_agent.cli.prompts.choices import KeyLine
from graph_agent.cli.prompts.prompt import Prompt
from graph_agent.cli.prompts.questions import PendingQuestions, StopTurn
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import EventBus
from graph_agent.ports import Proposal, ProposedRules, SandboxInfo
from graph_agent.session.turn_result import OpenQuestion
from tests.fakes.scripted_session import ScriptedSession, Turn, approval, recovery, rest

if TYPE_CHECKING:
    from graph_agent.cli.prompts.terminal import Terminal as _Terminal
else:
    _Terminal = object

KEYS = "y run · a always · e edit · n reject · r feedback · s stop · ? help › "
FIRST_OF_TWO = "y run · Y run all 2 · n reject · N reject all · ↑↓ choose · ? help › "
OUTSIDE_KEYS = "y run · a always · e edit · n reject · r feedback · o outside · ? help › "
SCOPE_KEYS = "t this thread · p project · u everywhere · b back (esc) › "
TYPO = "Type one of these keys, or choose one with the arrows; ? explains them."
A = approval("call-a", "bash", {"command": "echo a"})
B = approval("call-b", "bash", {"command": "echo b"})
HIGH = approval("call-c", "bash", {"command": "rm -rf d"}, risk="high")
CONTENT = "".join(f"line {n}\n" for n in range(500))
LONG = approval("call-a", "write_file", {"content": CONTENT})
LONG_COMMAND = approval("call-a", "bash", {"command": CONTENT})
MAKE = recovery("call-a", "bash", {"command": "make"})
BROKEN = tuple(recovery(f"call-{n}", "bash", {"command": f"make {n}"}) for n in (1, 2))
QUESTION = approval(
    "call-q",
    "ask_user",
    {"question": "Tabs or\x1b[2Jblanks?", "options": ["tabs", "blanks"]},
    requires_input=True,
    risk="low",
)
PLAN_CALL = approval("call-p", "present_plan", {"plan": "1. add"}, requires_input=True, risk="low")


class Typed(_Terminal):
    """A keyboard that answers each prompt with the next line; without one it waits until the question is gone."""

    def __init__(self, lines: Sequence[str], stream: io.StringIO) -> None:
        self._lines = list(lines)
        self._stream = stream

    async def answer(self, prompt: str | KeyLine, gone: Awaitable[object] | None = None) -> str | None:
        self._stream.write(f"{prompt if isinstance(prompt, str) else prompt.line(80)}\n")
        if self._lines:
            return self._lines.pop(0)
        assert gone is not None
        await gone
        return None

    def drop_typed_ahead(self) -> None:
        self._stream.write("<dropped>\n")

    @contextmanager
    def given_away(self) -> Iterator[None]:
        yield


class Scene:
    """Pending questions, the keys typed at them, and what was decided."""

    def __init__(self, folder: Path, *questions: OpenQuestion) -> None:
        self.elsewhere = folder / "elsewhere.json"
        self._questions = questions
        opening = Turn(rest("awaiting_approval", questions=questions))
        self.session = ScriptedSession(EventBus(), folder, opening=opening, elsewhere=self.elsewhere)
        self.answered: set[str] = set()

    def use_sandbox(self) -> None:
        self.session.sandbox = SandboxInfo("bubblewrap", "no network", is_active=True)

    def use_proposal(self, proposal: Proposal) -> None:
        async def propose(*_: object) -> Proposal:
            return proposal

        self.session.propose_grant = propose  # type: ignore[method-assign, assignment]  # proposes another rule

    async def ask(self, *lines: str) -> list[str]:
        """Type these lines; returns what was shown."""
        await self.session.start()
        self.session.log.clear()
        stream = io.StringIO()
        display = TurnDisplay(Console(file=stream, width=80, markup=False, highlight=False))
        questions = PendingQuestions(Prompt(self.session, Typed(lines, stream), display))
        self.answered = questions.answered
        await questions.ask_all(self._questions)
        return stream.getvalue().splitlines()


def _edit_as(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let $VISUAL leave this text behind."""
    script, edited = folder / "editor.sh", folder / "edited.txt"
    edited.write_text(text)
    script.write_text(f'#!/bin/sh\ncp {edited} "$1"\n')
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(script))


def _decided(*decisions: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [("decide", *decision) for decision in decisions]


@pytest.mark.parametrize(
    ("questions", "typed", "log"),
    [
        pytest.param((A, B), ("y", "n"), [("call-a", "approve", ""), ("call-b", "reject", "")], id="one by one"),
        pytest.param((A,), (" YES ",), [("call-a", "approve", "")], id="a word for its key"),
        pytest.param((A,), ("r", " not now "), [("call-a", "reject", "not now")], id="a reason"),
        pytest.param((LONG,), ("n",), [("call-a", "reject", "")], id="a long page rejected unopened"),
        pytest.param(
            (A,), ("a", "", "t"), [("call-a", "approve", "", "always thread", "bash(echo a)")], id="always, Enter"
        ),
        pytest.param(
            (A,), ("d", "", "t"), [("call-a", "reject", "", "always deny thread", "bash(echo a)")], id="always deny"
        ),
        pytest.param((A,), ("a", "b", "n"), [("call-a", "reject", "")], id="back from always"),
        pytest.param((MAKE,), ("r",), [("call-a", "retry", "")], id="retry"),
        pytest.param((MAKE,), ("c",), [("call-a", "cancel", "")], id="cancel"),
        pytest.param((MAKE,), ("x", "d", " it is there "), [("call-a", "done", "it is there")], id="done"),
        pytest.param((QUESTION,), ("2",), [("call-q", "answer", "blanks")], id="an option by its number"),
        pytest.param((QUESTION,), ("", "  both "), [("call-q", "answer", "both")], id="free text"),
        pytest.param((QUESTION,), ("3",), [("call-q", "answer", "3")], id="a number of no option"),
        pytest.param((QUESTION,), ("y",), [("call-q", "answer", "y")], id="y is an answer in words"),
        pytest.param((QUESTION,), ("/skip",), [("call-q", "reject", "")], id="a question skipped"),
        pytest.param(
            (A, QUESTION),
            ("y", "tabs"),
            [("call-a", "approve", ""), ("call-q", "answer", "tabs")],
            id="a question beside an approval",
        ),
        pytest.param(
            (A, B),
            ("Y", "", "b", "n", "y"),
            [("call-a", "reject", ""), ("call-b", "approve", "")],
            id="run all shows the others first and back asks one by one",
        ),
        pytest.param(
            (A, B, HIGH),
            ("y", "N"),
            [("call-a", "approve", ""), ("call-b", "reject", ""), ("call-c", "reject", "")],
            id="reject all from the second question on",
        ),
        pytest.param(
            (A, B, HIGH),
            ("3", "y", "2", "n", "y"),
            [("call-c", "approve", ""), ("call-b", "reject", ""), ("call-a", "approve", "")],
            id="another one by its number, and round",
        ),
        pytest.param((A,), ("Y",), [("call-a", "approve", "")], id="a capital letter where there is only one"),
        pytest.param((PLAN_CALL,), ("y",), [("call-p", "answer", "start, ask before changes")], id="a plan"),
        pytest.param((PLAN_CALL,), ("?", "a"), [("call-p", "answer", "start, accept edits")], id="accept edits"),
        pytest.param((PLAN_CALL,), ("n",), [("call-p", "reject", "")], id="keep planning"),
        pytest.param((PLAN_CALL,), ("tests first",), [("call-p", "answer", "tests first")], id="what to change"),
        pytest.param((PLAN_CALL,), ("r", "n"), [("call-p", "reject", "")], id="a key of other questions"),
    ],
)
async def test_what_is_typed_is_recorded(
    tmp_path: Path, questions: tuple[OpenQuestion, ...], typed: tuple[str, ...], log: list[tuple[str, ...]]
) -> None:
    scene = Scene(tmp_path, *questions)

    await scene.ask(*typed)

    assert scene.session.log == _decided(*log)
    assert scene.answered == {decision[0] for decision in log}


@pytest.mark.parametrize(
    ("questions", "typed", "log"),
    [((A, B), ("y", "s"), _decided(("call-a", "approve", ""))), ((QUESTION,), ("/stop",), [])],
)
async def test_stop_ends_the_asking_and_keeps_given_answers(
    tmp_path: Path, questions: tuple[OpenQuestion, ...], typed: tuple[str, ...], log: list[Any]
) -> None:
    scene = Scene(tmp_path, *questions)

    with pytest.raises(StopTurn):
        await scene.ask(*typed)

    assert (scene.session.log, scene.answered) == (log, {entry[1] for entry in log})


async def test_a_typo_is_asked_again_and_answers_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)

    shown = await scene.ask("", "yy", "always yes", "approve", "/tasks", "n")

    assert shown.count(TYPO) == 4
    assert sum("Press Esc first" in line for line in shown) == 1
    assert scene.session.log == _decided(("call-a", "reject", ""))


async def test_the_page_comes_first_and_keys_typed_before_the_prompt_do_not_count(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, A).ask("y")

    assert (shown[0].startswith("bash  "), shown[-2:]) == (True, ["<dropped>", KEYS])


async def test_a_long_page_must_be_viewed_before_it_can_be_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'viewed'}")
    scene = Scene(tmp_path, LONG)

    shown = await scene.ask("y", "v", "y")

    assert shown.count("You have not seen all of it: v views it.") == 1
    assert "  … 462 lines not shown" in shown
    assert [line for line in shown if line.startswith("write_file ")] == [shown[0]] * 4
    assert "y run · v view all · e edit · n reject · r feedback · s stop · ? help › " in shown
    assert "  │ line 250" in (tmp_path / "viewed").read_text().splitlines()
    assert scene.session.log == _decided(("call-a", "approve", ""))


@pytest.mark.parametrize("pager", ["", "false", "/no/pager"])
async def test_without_a_pager_a_long_page_is_turned_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: str
) -> None:
    monkeypatch.setenv("PAGER", pager)
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", "" if pager else "1")
    scene = Scene(tmp_path, LONG)

    shown = await scene.ask("v", "", "q", "y", "v", *[""] * 22, "y")

    assert any(line.endswith("more lines: Enter continues, q returns › ") for line in shown)
    assert shown.count("You have not seen all of it: v views it.") == 1
    assert "  │ line 250" in shown
    assert scene.session.log == _decided(("call-a", "approve", ""))


async def test_the_keys_are_explained_with_what_the_page_leaves_out(tmp_path: Path) -> None:
    shown = await Scene(tmp_path, approval("call-a", "bash", {"command": "x"}, rule="risk x", reason="Why.")).ask(
        "?", "n"
    )

    explained = shown[shown.index(KEYS) + 1 :]
    assert explained[0].split() == ["y", "run", "run", "it", "once"]
    assert [line for line in explained if line.startswith(("  call call-a, attempt 1, in", "  Why."))] != []
    assert explained[-1] == KEYS


async def test_several_questions_are_listed_before_the_first_and_the_last_offers_no_all(tmp_path: Path) -> None:
    listed = approval("c1", "bash", {"command": "ls"}, summary="$ ls\x1b[2J", risk="high")

    shown = await Scene(tmp_path, listed, B).ask("y", "y")

    assert [line.split() for line in shown[:3]] == [
        ["2", "calls", "need", "approval", "·", "↑↓", "or", "a", "number", "shows", "another"],
        ["1", "bash", "ls\\x1b[2J", "HIGH"],
        ["2", "bash", "MEDIUM"],
    ]
    assert [line for line in shown if line.endswith("› ")] == [FIRST_OF_TWO, KEYS]
    assert [line.split("  ")[0] for line in shown if "of 2" in line] == ["1 of 2 · bash", "2 of 2 · bash"]


@pytest.mark.parametrize("typed", [(), ("a",)])
async def test_a_question_answered_elsewhere_while_it_is_asked_disappears(
    tmp_path: Path, typed: tuple[str, ...]
) -> None:
    scene = Scene(tmp_path, A)
    asyncio.get_running_loop().call_later(0.1, scene.elsewhere.write_text, '{"call-a": "reject"}')

    shown = await scene.ask(*typed)

    assert (shown[-1], scene.session.log) == ("bash: answered by you, in another terminal: no", [])


async def test_a_question_answered_before_it_is_its_turn_is_not_asked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)
    scene.elsewhere.write_text('{"call-b": "approve"}')

    shown = await scene.ask("y")

    assert (shown.count(FIRST_OF_TWO), shown[-1]) == (1, "bash: answered by you, in another terminal: yes")


async def test_the_answer_that_was_first_is_shown_when_ours_came_too_late(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    decide = scene.session.decide

    async def too_late(*args: Any, **named: Any) -> object:
        scene.elsewhere.write_text('{"call-a": "reject"}')
        return await decide(*args, **named)

    scene.session.decide = too_late  # type: ignore[method-assign, assignment]  # others answer in this very moment

    assert (await scene.ask("y"))[-1] == "bash: answered by you, in another terminal: no"


async def test_always_shows_its_rules_and_stores_them_for_the_chosen_scope(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approval("call-a", "bash", {"command": "git status && rm -rf ./tmp"}))

    shown = await scene.ask("a", "x", "p")

    rules = ("bash(git status)", "bash(rm -rf ./tmp)")
    start = shown.index("Allow from now on:")
    assert shown[start + 1 : start + 3] == [f"  {rule}" for rule in rules]
    assert shown.count(SCOPE_KEYS) == 2
    assert "<dropped>" in shown[start:]
    assert scene.session.log == _decided(("call-a", "approve", "", "always project", *rules))


async def test_always_deny_shows_its_rule_and_where_it_holds(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)

    shown = await scene.ask("d", "u")

    assert shown[(start := shown.index("Deny from now on:")) + 1] == "  bash(echo a)"
    assert "Applies in every mode; /policy revoke revokes it." in shown[start:]
    assert scene.session.log == _decided(("call-a", "reject", "", "always deny user", "bash(echo a)"))


async def test_a_call_of_which_no_rule_can_be_made_says_why_and_is_asked_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approval("call-a", "new_task", {"prompt": "x"}))

    shown = await scene.ask("a", "y")

    assert "No rule can be saved for this call. It names no command." in shown
    assert scene.session.log == _decided(("call-a", "approve", ""))


@pytest.mark.parametrize(
    ("proposal", "said"),
    [
        (Proposal(("edit_file(/w/a)",), coverage="This allows every change."), "     This allows every change."),
        (Proposal(("bash(rm -rf ./tmp)",), coverage="Only in sub\x1b[2J."), "     Only in sub\\x1b[2J."),
        (Proposal(("bash(make)",), folders=((".", "a\x1b[2J"),)), "  bash(make)  in . or a\\x1b[2J"),
    ],
)
async def test_a_rule_says_how_far_it_reaches(tmp_path: Path, proposal: Proposal, said: str) -> None:
    scene = Scene(tmp_path, A)
    scene.use_proposal(proposal)

    assert any(line.startswith(said) for line in await scene.ask("a", "t"))


_IN_PLAN_MODE = Proposal(objection="No.", denied="bash cannot be used in plan mode; get the plan approved first.")


@pytest.mark.parametrize(
    ("questions", "typed", "log"),
    [
        ((A,), ("y", "a", "o", "n"), [("call-a", "reject", "")]),
        ((A,), ("r", "not yet"), [("call-a", "reject", "not yet")]),
        ((A, B), ("Y", "N"), [("call-a", "reject", ""), ("call-b", "reject", "")]),
    ],
)
async def test_what_the_mode_denies_by_now_cannot_be_approved(
    tmp_path: Path, questions: tuple[OpenQuestion, ...], typed: tuple[str, ...], log: list[tuple[str, ...]]
) -> None:
    scene = Scene(tmp_path, *questions)
    scene.use_proposal(_IN_PLAN_MODE)
    scene.use_sandbox()

    shown = await scene.ask(*typed)

    assert scene.session.log == _decided(*log)
    assert "  It cannot be approved now: bash cannot be used in plan mode; get the plan" in shown
    assert not any(line.startswith("y run") or " o outside" in line for line in shown)


_ANY = ProposedRules(
    ("bash(npm test *)", "bash(rm x)"),
    ("bash(npm test *)",),
    "This allows npm test with any arguments.",
)


@pytest.mark.parametrize(
    ("typed", "granted"),
    [
        (("a", "1", "p"), ("always project", "bash(npm test -q)", "bash(rm x)")),
        (("a", "1", "", "t"), ("always thread", "bash(npm test -q)", "bash(rm x)")),
        (("a", "exact", "u"), ("always user", "bash(npm test -q)", "bash(rm x)")),
        (("a", "2", "p"), ("always project", "bash(npm test *)", "bash(rm x)")),
        (("a", "prefix", "t"), ("always thread", "bash(npm test *)", "bash(rm x)")),
        (("a", "x", "3", "2", "u"), ("always user", "bash(npm test *)", "bash(rm x)")),
        (("a", "a", "b", "a", "e", "t"), ("always thread", "bash(npm test -q)", "bash(rm x)")),
    ],
)
async def test_always_stores_the_rules_that_were_chosen(
    typed: tuple[str, ...], granted: tuple[str, ...], tmp_path: Path
) -> None:
    scene = Scene(tmp_path, A)
    exact = ("bash(npm test -q)", "bash(rm x)")
    scene.use_proposal(Proposal(exact, prefix=_ANY, coverage="This allows these words."))

    shown = await scene.ask(*typed)

    assert scene.session.log == _decided(("call-a", "approve", "", *granted))
    start = shown.index("Allow from now on:")
    assert shown[start : start + 7] == [
        "Allow from now on:",
        "  e  exactly        bash(npm test -q)",
        "                    bash(rm x)",
        "     The call needs these 2 rules together. This allows these words.",
        "  a  any arguments  bash(npm test *)",
        "                    bash(rm x)",
        "     The call needs these 2 rules together. This allows npm test with any",
    ]
    assert "e exactly · a any arguments · b back (esc) › " in shown


async def test_without_an_exact_rule_always_asks_for_the_scope_of_the_other(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A)
    scene.use_proposal(Proposal(prefix=_ANY, objection="A pattern."))

    shown = "\n".join(await scene.ask("a", "p"))

    assert scene.session.log == _decided(("call-a", "approve", "", "always project", *_ANY.rules))
    assert "e exactly" not in shown
    assert "  any arguments  bash(npm test *)" in shown


async def test_edited_arguments_are_shown_again_with_their_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, A)
    _edit_as(tmp_path, '{"command": "echo mine"}', monkeypatch)

    shown = await scene.ask("e", "y")

    again = shown[shown.index(KEYS) + 1 :]
    assert [line for line in again if line.startswith("  ")] == [
        "  policy asks again",
        "  $ echo mine",
        "  These are your edited arguments, not the model's.",
        "  as edited",
    ]


async def test_one_answer_for_all_is_not_offered_for_edited_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, A, B)
    _edit_as(tmp_path, '{"command": "echo mine"}', monkeypatch)

    await scene.ask("e", "Y", "n")

    assert scene.session.log == _decided(
        ("call-a", "edit", "", '{"command": "echo mine"}'), ("call-b", "reject", "")
    )


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [(("e", "y"), ()), (("e", "a", "u"), ("always user", "bash(echo mine)")), (("e", "outside"), ("outside",))],
)
async def test_the_edited_arguments_are_what_is_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: tuple[str, ...], recorded: tuple[str, ...]
) -> None:
    scene = Scene(tmp_path, A)
    scene.use_sandbox()
    _edit_as(tmp_path, '{"command": "echo mine"}', monkeypatch)

    await scene.ask(*typed)

    assert scene.session.log == _decided(("call-a", "edit", "", '{"command": "echo mine"}', *recorded))


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ("not json", "The edited text is not valid JSON"),
        ("[1]", "The arguments must be a JSON object, not list."),
        ('{"command": NaN}', "The edited text is not valid JSON: NaN is not a JSON number"),
        ('{"command": "echo a"}', "Nothing was changed."),
        ('{"command": "rm x"}', "a rule denies them"),
    ],
)
async def test_an_unusable_or_refused_edit_leaves_the_question_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str, said: str
) -> None:
    scene = Scene(tmp_path, A)
    scene.session.refusals["call-a"] = "a rule denies them"
    _edit_as(tmp_path, edited, monkeypatch)

    shown = await scene.ask("e", "y")

    assert [line for line in shown if line.startswith(said)] != []
    assert (shown.count(KEYS), scene.session.log) == (2, _decided(("call-a", "approve", "")))


async def test_only_a_command_in_an_active_sandbox_may_be_let_out(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, approval("call-b", "write_file", {"content": "x"}))
    scene.use_sandbox()

    shown = await scene.ask("o", "o", "y")

    assert [TYPO in shown, any("o outside" in line for line in shown)] == [True, False]  # two calls: no room
    assert scene.session.log == _decided(("call-a", "approve", "", "outside"), ("call-b", "approve", ""))


@pytest.mark.parametrize("name", ["off", "none"])
async def test_without_a_sandbox_nothing_is_let_out_and_the_page_says_so(tmp_path: Path, name: str) -> None:
    scene = Scene(tmp_path, A)
    scene.session.sandbox = SandboxInfo(name, "commands run with all your rights")

    shown = await scene.ask("o", "y")

    assert KEYS in shown
    assert any("all your rights" in line for line in shown)
    assert scene.session.log == _decided(("call-a", "approve", ""))


async def test_a_long_command_cannot_be_let_out_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, LONG_COMMAND)
    scene.use_sandbox()

    monkeypatch.setenv("PAGER", "cat")

    shown = await scene.ask("o", "v", "o")

    assert "You have not seen all of it: v views it." in shown
    assert scene.session.log == _decided(("call-a", "approve", "", "outside"))


@pytest.mark.parametrize("typed", [("e", "r"), ("r",)])
async def test_what_still_runs_is_ended_before_the_call_is_tried_again(
    tmp_path: Path, typed: tuple[str, ...]
) -> None:
    scene = Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}, processes=(7, 8)))

    shown = await scene.ask(*typed)

    assert scene.session.log == [("end", "call-a"), *_decided(("call-a", "retry", ""))]
    assert "  2 processes still running (pid 7, 8); a retry ends them first" in shown
    assert [line for line in shown if line.endswith("› ")] == [
        "r retry · d mark as done · c cancel · e end processes · ? help › ",
        "r retry · d mark as done · c cancel · ? help › ",
    ][: len(typed)]


async def test_a_question_of_the_model_is_shown_with_its_options_and_never_answered_with_all(
    tmp_path: Path,
) -> None:
    shown = await Scene(tmp_path, QUESTION).ask("2")
    beside = await Scene(tmp_path, A, QUESTION).ask("y", "tabs")

    assert shown == [
        "Question",
        "  Tabs or\\x1b[2Jblanks?",
        "  1  tabs",
        "  2  blanks",
        "<dropped>",
        "1-2, or your own words · /skip · /stop the turn · ? help › ",
    ]
    assert [line for line in beside if line.endswith("› ")] == [
        "y run · a always · e edit · n reject · r feedback · ↑↓ choose · ? help › ",
        "1-2, or your own words · /skip · /stop the turn · ? help › ",
    ]


async def test_one_answer_for_all_comes_after_each_was_shown_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, HIGH)

    shown = await scene.ask("Y", "y")

    asked = shown.index("One answer for the 3 calls shown, 1 of them HIGH risk:")
    assert [line for line in shown[:asked] if line.startswith("  $ ")] == [
        "  $ echo a",
        "  $ echo b",
        "  $ rm -rf d",
    ]
    assert shown[asked + 1 :] == ["<dropped>", "y run all · b back (esc) › "]
    assert scene.session.log == _decided(*((call, "approve", "") for call in ("call-a", "call-b", "call-c")))
    assert scene.answered == {"call-a", "call-b", "call-c"}


async def test_a_call_too_long_to_be_seen_at_once_is_asked_about_by_itself(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, approval("call-d", "write_file", {"content": CONTENT}))

    shown = await scene.ask("Y", "y", "n")

    assert "write_file is long: you are asked about it separately." in shown
    assert scene.session.log == _decided(
        ("call-a", "approve", ""), ("call-b", "approve", ""), ("call-d", "reject", "")
    )


async def test_what_was_answered_elsewhere_is_left_out_of_the_one_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B, HIGH)
    scene.elsewhere.write_text('{"call-b": "reject"}')

    shown = await scene.ask("Y", "y")

    assert "One answer for the 2 calls shown, 1 of them HIGH risk:" in shown
    assert [entry[1] for entry in scene.session.log] == ["call-a", "call-c"]
    assert scene.answered == {"call-a", "call-b", "call-c"}


async def test_interrupted_calls_are_decided_together_and_approvals_stay_apart(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, *BROKEN)

    shown = await scene.ask("y", "D", "d", "all done")

    assert "One answer for the 2 calls shown:" in shown
    assert scene.session.log == _decided(
        ("call-a", "approve", ""), ("call-1", "done", "all done"), ("call-2", "done", "all done")
    )


async def test_a_number_with_a_key_behind_it_shows_the_call_and_answers_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, A, B)

    shown = await scene.ask("2y", "n", "n")

    assert "Call 2 is shown first. Answer it with a key." in shown
    assert scene.session.log == _decided(("call-b", "reject", ""), ("call-a", "reject", ""))
