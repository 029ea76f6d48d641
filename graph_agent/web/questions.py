"""The inbox: everything that waits for a person in any thread, and the forms that answer it.

A form names the question as it was shown: call, attempt and digest of the arguments. If the call asks something
else by now, the answer is refused and the person sees the new question. The first answer wins, given anywhere.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph_agent.app.approvals import (
    RecordedAnswer,
    answer_always,
    edit_approval,
    format_next_step,
    propose_rules,
    record_answer,
)
from graph_agent.app.reader import read_database
from graph_agent.calls import allowed_answers, args_digest, question_and_options
from graph_agent.errors import AgentError, AnswerRefused, NothingYet, QuestionChanged
from graph_agent.inspect import CallView, Reader
from graph_agent.inspect.calls import decision_words
from graph_agent.ports import Answer, GrantEffect, Question, QuestionKind, SystemClock, rules_with_folders
from graph_agent.web.live import Item, Region, short_id
from graph_agent.web.rendering import render
from graph_agent.web.site import Form, Outcome, Refused, Site, address, number_in

__all__ = ["Asked", "inbox_regions", "question_items", "question_routes"]

_PER_PAGE = 8
_KINDS = ("approve", "reject", "answer", "edit", "retry", "done", "cancel")
_DONE = {
    "approve": "Approved",
    "edit": "Approved as edited:",
    "answer": "Answered",
    "reject": "Rejected",
    "retry": "Will be run again:",
    "done": "Marked as done:",
    "cancel": "Cancelled",
}
_Recovery = Literal["retry", "done", "cancel"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a page showed it."""

    thread_id: str
    call_id: str
    attempt: int
    digest: str

    @classmethod
    def of(cls, view: CallView) -> "Asked":
        """The question that a call asks now."""
        record = view.record
        call_id, attempt = str(record["call_id"]), int(record.get("attempt") or 1)
        digest = record.get("args_digest") or args_digest(
            call_id, record["tool_name"], attempt, record.get("arguments") or {}
        )
        return cls(view.thread_id, call_id, attempt, str(digest))

    @classmethod
    def parse(cls, text: str) -> "Asked":
        """The question that a form names.

        Raises:
            Refused: it names none.
        """
        try:
            thread_id, call_id, attempt, digest = json.loads(text)
            return cls(str(thread_id), str(call_id), int(attempt), str(digest))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise Refused(400, "The form names no question. Nothing was changed.") from error

    @property
    def text(self) -> str:
        """The question as the value of a form's field."""
        return json.dumps([self.thread_id, self.call_id, self.attempt, self.digest])

    @property
    def name(self) -> str:
        """The call as all use cases take it."""
        return f"{self.thread_id}:{self.call_id}"

    def question(self, kind: QuestionKind) -> Question:
        """The question as a use case takes it."""
        return Question(kind, self.call_id, self.attempt, self.digest)


def question_routes(site: Site) -> list[Route]:
    """The inbox and its forms."""

    def inbox(request: Request) -> Response:
        regions, total = inbox_regions(site, request)
        pages = max(-(-total // _PER_PAGE), 1)
        return site.page(
            request, "inbox.html", title="Inbox", regions=regions, page=number_in(request, "page"), pages=pages
        )

    def always(request: Request) -> Response:
        return _show_rules(site, request)

    def edit(request: Request) -> Response:
        asked, view, back = _question_in(site, request)
        return site.page(request, "edit.html", title="Edit", asked=asked, view=view, back=back)

    async def answer(form: Form) -> Outcome:
        asked = Asked.parse(form.text("asked"))
        return Outcome(await _answer(site, form, asked, form.choice("do", *_KINDS)), form.back())

    async def answer_several(form: Form) -> Outcome:
        return await _answer_several(site, form)

    async def store_rules(form: Form) -> Outcome:
        return await _answer_always(site, form)

    return [
        Route("/", inbox),
        Route("/always", always, methods=["GET"]),
        Route("/edit", edit),
        Route("/answer", site.action(answer), methods=["POST"]),
        Route("/answers", site.action(answer_several), methods=["POST"]),
        Route("/always", site.action(store_rules), methods=["POST"]),
    ]


def inbox_regions(site: Site, request: Request) -> tuple[list[Region], int]:
    """One page of the questions, oldest first, and how many there are."""
    page = number_in(request, "page")
    try:
        with read_database(site.database) as reader:
            views = reader.questions()
            workspaces = reader.workspaces()
    except NothingYet:
        views, workspaces = [], {}
    views.sort(key=lambda view: (view.answer is not None, str(view.record.get("asked_at") or "")))
    shown = views[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    waiting = sum(view.answer is None for view in views)
    summary = Item("inbox-summary", render("_summary.html", {"waiting": waiting, "answered": len(views) - waiting}))
    items = question_items(site, shown, workspaces, back=address("/", page=page if page > 1 else ""))
    return [Region("summary", [summary]), Region("questions", items)], len(views)


def question_items(
    site: Site, views: Sequence[CallView], workspaces: Mapping[str, str], *, back: str, is_bulk: bool = True
) -> list[Item]:
    """A card for each question; an answered one says by whom, and has no form."""
    items = []
    for view in views:
        asked = Asked.of(view)
        values = site.values(
            asked=asked.text,
            back=back,
            card=short_id("q", view.thread_id, asked.call_id),
            is_bulk=is_bulk,
            kinds=allowed_answers(view.record),
            view=view,
            workspace=workspaces.get(view.thread_id, ""),
        )
        css = f"card question {view.record.get('risk', 'medium')}{' answered' if view.answer else ''}"
        what = "interrupted call" if view.record["status"] == "interrupted" else "approval"
        label = f"{what}: {view.record['tool_name']} {str(view.record.get('summary') or '')[:80]}"
        items.append(Item(values["card"], render("_question.html", values), css, " ".join(label.split())))
    return items


def _current(reader: Reader, asked: Asked) -> CallView | None:
    """The call, if it asks what the page showed; None if it asks nothing any more.

    Raises:
        QuestionChanged: it asks something else.
    """
    found = next(
        (
            view
            for view in reader.questions()
            if (view.thread_id, view.record["call_id"]) == (asked.thread_id, asked.call_id)
        ),
        None,
    )
    if found is not None and Asked.of(found) != asked:
        raise QuestionChanged(asked.call_id)
    return found


async def _answer(site: Site, form: Form, asked: Asked, kind: str) -> Sequence[str]:
    """Record one answer; returns what to say about it."""
    with read_database(site.database) as reader:
        view = _current(reader, asked)
    if kind in ("retry", "done", "cancel"):
        recorded = await _decide(site, asked, kind, form)  # type: ignore[arg-type]  # one of these three
    elif view is not None and view.record["status"] == "interrupted":
        raise AnswerRefused(f"Call {asked.call_id!r} was interrupted: retry it, mark it as done, or cancel it.")
    elif kind == "edit":
        recorded = await edit_approval(
            site.database, asked.name, _edited(form), by=site.author, shown=asked.question("approval")
        )
    else:
        reason = form.text("text" if kind == "answer" else "reason").strip()
        if kind == "answer":
            reason = reason or _option(view, form.text("option"))
        if kind == "answer" and not reason:
            raise Refused(400, "The answer is empty. Choose one of the options, or write your own.")
        given = Answer(kind, site.author, SystemClock().now(), reason=reason)  # type: ignore[arg-type]  # checked
        recorded = await record_answer(site.database, asked.name, given, shown=asked.question("approval"))
    return _said(site, recorded)


async def _answer_several(site: Site, form: Form) -> Outcome:
    """Give the same answer to each selected question that takes it."""
    kind = form.choice("do", "approve", "reject", "retry", "cancel")
    chosen = [Asked.parse(text) for text in form.all("asked")]
    if not chosen:
        return Outcome(["Nothing was selected, so nothing was changed."], form.back())
    lines: list[str] = []
    for asked in dict.fromkeys(chosen):
        try:
            lines += await _answer(site, form, asked, kind)
        except AgentError as refused:
            lines.append(str(refused))
    return Outcome(lines, form.back())


def _option(view: CallView | None, number: str) -> str:
    """The option that a form names by its number: the texts of options are the model's, of any characters."""
    options = question_and_options(view.record)[1] if view is not None else ()
    return next((option for place, option in enumerate(options) if str(place) == number), "")


async def _decide(site: Site, asked: Asked, kind: _Recovery, form: Form) -> RecordedAnswer:
    from graph_agent.app.recovery import Decision, decide_calls

    result = form.text("result").strip() if kind == "done" else ""
    decision = Decision(kind, asked.name, result, asked.question("recovery"))
    ends = form.text("end_processes") == "yes"
    recorded = await decide_calls(site.database, None, [decision], by=site.author, end_processes=ends)
    return recorded[0]


def _edited(form: Form) -> dict[str, Any]:
    try:
        value = json.loads(form.text("arguments"))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"The edited arguments are not JSON ({error}). The call is still pending.") from error
    if not isinstance(value, dict):
        raise Refused(400, "The edited arguments are not a JSON object. The call is still pending.")
    return value


def _said(site: Site, recorded: RecordedAnswer) -> Sequence[str]:
    """What was recorded, or who was first."""
    if not recorded.accepted:
        return [
            f"Call {recorded.call_id} was already {decision_words(recorded.kind, recorded.by)}. That answer counts."
        ]
    if site.runner is not None and site.runner.wake(recorded.thread_id):
        return [f"{_DONE[recorded.kind]} {recorded.call_id}. This server continues the thread."]
    return [f"{_DONE[recorded.kind]} {recorded.call_id}. {format_next_step(recorded.thread_id, site.database)}"]


def _question_in(site: Site, request: Request) -> tuple[Asked, CallView, str]:
    """The question that an address names, its call, and the page to go back to.

    Raises:
        AnswerRefused: nobody asks that any more.
    """
    asked = Asked.parse(request.query_params.get("asked", ""))
    with read_database(site.database) as reader:
        view = _current(reader, asked)
    if view is None or not view.is_waiting:
        raise _answered(asked)
    return asked, view, Form({"back": [request.query_params.get("back", "")]}).back()


def _answered(asked: Asked) -> AnswerRefused:
    return AnswerRefused(f"Call {asked.call_id!r} is not waiting for approval any more.")


def _show_rules(site: Site, request: Request) -> Response:
    """The rules that "always" or "always deny" would store, before it stores them."""
    asked, view, back = _question_in(site, request)
    effect: GrantEffect = "deny" if request.query_params.get("effect") == "deny" else "allow"
    proposal = asyncio.run(propose_rules(site.database, asked.name, effect))
    if proposal is None:
        raise _answered(asked)
    choices = {name: found for name in ("exact", "prefix") if (found := proposal.choice(name)) is not None}
    return site.page(
        request,
        "always.html",
        title="Always deny" if effect == "deny" else "Allow always",
        effect=effect,
        asked=asked,
        view=view,
        choices=choices,
        proposal=proposal,
        back=back,
    )


def _rules(text: str) -> list[str]:
    """The rules that the page showed."""
    try:
        return [str(rule) for rule in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(400, "The form names no rule. Nothing was changed.") from error


async def _answer_always(site: Site, form: Form) -> Outcome:
    asked = Asked.parse(form.text("asked"))
    scope = form.choice("scope", "thread", "project", "user")
    rule = form.choice("rule", "exact", "prefix")
    effect = form.choice("effect", "allow", "deny")
    recorded, always, coverage = await answer_always(
        site.database,
        asked.name,
        (effect, scope, rule),  # type: ignore[arg-type]  # each is one of its choices
        form.text("reason").strip() if effect == "deny" else "",
        by=site.author,
        shown=asked.question("approval"),
        shown_rules=_rules(form.text(f"rules-{rule}")),
    )
    lines = [*_said(site, recorded)]
    if recorded.accepted:
        done = "denied" if effect == "deny" else "allowed"
        stored = ", ".join(rules_with_folders(always))
        lines += [f"Always {done} ({scope}): {stored}", *filter(None, (coverage,))]
    return Outcome(lines, form.back())
