"""The `approvals`, `recover`, `policy`, `tools` and `agents` commands: answer calls, and see how they are decided.

They never run a call or the graph.
"""

from enum import StrEnum
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from graph_agent.cli.command_types import PlainCommand, command_group
from graph_agent.cli.options import AsJson, Database, resolve_database
from graph_agent.config.paths import own_command

__all__ = ["Rule", "Scope", "agents_app", "approvals_app", "policy_app", "recover_command", "tools_app"]

approvals_app = command_group("List pending approvals and answer them.")


class Scope(StrEnum):
    """Scope of a saved permission."""

    thread = "thread"
    project = "project"
    user = "user"


class Rule(StrEnum):
    """Which rule a saved permission has."""

    exact = "exact"
    prefix = "prefix"


_RuleOption = Annotated[
    Rule | None,
    Option(
        "--rule", help="With --always: exactly this call, or its first words with any arguments. Default: exact."
    ),
]
_ScopeOption = Annotated[Scope | None, Option("--scope", help="Scope of --always. Default: thread.")]
_Call = Annotated[str, Argument(metavar="CALL", help="Call id or THREAD:CALL.")]


@approvals_app.command("list", cls=PlainCommand)
def list_command(
    *,
    thread: Annotated[str | None, Option("--thread", metavar="ID", help="Only calls of this thread.")] = None,
    tool: Annotated[str | None, Option("--tool", metavar="NAME", help="Only calls of this tool.")] = None,
    risk: Annotated[
        str | None, Option("--risk", metavar="low|medium|high", help="Only calls with this risk.")
    ] = None,
    older_than: Annotated[
        str | None,
        Option(
            "--older-than", metavar="SPAN", help="Only calls that have waited this long, e.g. 90s, 10m, 2h, 3d."
        ),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the pending approvals of all threads."""
    from graph_agent.cli.views.approvals import list_approvals

    database = resolve_database(db)
    list_approvals(database, thread=thread, tool=tool, risk=risk, older_than=older_than, as_json=as_json)


@approvals_app.command("approve", cls=PlainCommand)
def approve_command(
    call: _Call,
    *,
    always: Annotated[
        bool, Option("--always", help="Also allow matching calls from now on; prints the rule.")
    ] = False,
    rule: _RuleOption = None,
    scope: _ScopeOption = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call. The process that holds the thread continues immediately."""
    from graph_agent.cli.views.approvals import answer_call, answer_call_always

    stored = _rules_to_store(rule, scope, always=always)
    if stored is None:
        answer_call(resolve_database(db), call, "approve", "", as_json=as_json)
    else:
        answer_call_always(resolve_database(db), call, ("allow", *stored), as_json=as_json)


@approvals_app.command("reject", cls=PlainCommand)
def reject_command(
    call: _Call,
    *,
    reason: Annotated[str, Option("--reason", help="Sent to the model.")] = "",
    always: Annotated[
        bool, Option("--always", help="Also deny matching calls from now on; prints the rule.")
    ] = False,
    rule: _RuleOption = None,
    scope: _ScopeOption = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Reject a call; the model receives the reason."""
    from graph_agent.cli.views.approvals import answer_call, answer_call_always

    stored = _rules_to_store(rule, scope, always=always)
    if stored is None:
        answer_call(resolve_database(db), call, "reject", reason, as_json=as_json)
    else:
        answer_call_always(resolve_database(db), call, ("deny", *stored), reason, as_json=as_json)


def _rules_to_store(
    rule: Rule | None, scope: Scope | None, *, always: bool
) -> tuple[Literal["thread", "project", "user"], Literal["exact", "prefix"]] | None:
    """The scope and the kind of the rules of --always; None without it.

    Raises:
        BadParameter: one of the others was given without it.
    """
    if always:
        return (scope or Scope.thread).value, (rule or Rule.exact).value
    if rule is not None:
        raise typer.BadParameter(f"--rule {rule.value} needs --always.")
    if scope is not None:
        raise typer.BadParameter(f"--scope {scope.value} needs --always.")
    return None


@approvals_app.command("answer", cls=PlainCommand)
def answer_command(
    call: _Call,
    text: Annotated[str, Argument(metavar="TEXT", help="One of the options, or your own text.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question of the model."""
    from graph_agent.cli.views.approvals import answer_call

    if not text.strip():
        raise typer.BadParameter(
            f"TEXT is empty. To leave the question unanswered: {own_command()} approvals reject {call}"
        )
    answer_call(resolve_database(db), call, "answer", text, as_json=as_json)


@approvals_app.command("edit", cls=PlainCommand)
def edit_command(
    call: _Call,
    arguments: Annotated[str, Option("--arguments", metavar="JSON", help="All arguments, as one JSON object.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call with edited arguments, which are checked against policy again."""
    from graph_agent.cli.views.approvals import edit_call

    edit_call(resolve_database(db), call, arguments, as_json=as_json)


def recover_command(
    thread: Annotated[str | None, Argument(help="Thread or checkpoint id. Default: all threads.")] = None,
    *,
    retry: Annotated[
        list[str] | None, Option("--retry", metavar="CALL", help="Run the call again as a new attempt; repeatable.")
    ] = None,
    done: Annotated[
        list[str] | None, Option("--done", metavar="CALL", help="Mark the call as done; repeatable.")
    ] = None,
    result: Annotated[str, Option("--result", help="With --done: the result that the model receives.")] = "",
    cancel: Annotated[
        list[str] | None, Option("--cancel", metavar="CALL", help="Cancel the call; repeatable.")
    ] = None,
    everything: Annotated[
        str | None, Option("--all", metavar="retry|done|cancel", help="Decision for all other interrupted calls.")
    ] = None,
    end_processes: Annotated[
        bool, Option("--end-processes", help="First terminate processes that the calls left running.")
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """List interrupted calls, or resolve them. The process that holds the thread continues immediately."""
    from graph_agent.cli.views.recovery import list_interrupted, resolve_calls

    database = resolve_database(db)
    if not (retry or done or cancel or everything or result):
        list_interrupted(database, thread, as_json=as_json)
        return
    resolve_calls(
        database,
        thread,
        {"retry": retry or (), "done": done or (), "cancel": cancel or ()},
        everything=everything,
        result=result,
        end_processes=end_processes,
        as_json=as_json,
    )


policy_app = command_group("Check, list and revoke permission rules.")

_Mode = Annotated[str | None, Option("--mode", help="Evaluate in this mode. Default: the configured one.")]
_Workspace = Annotated[
    str | None, Option("--workspace", metavar="DIR", help="Evaluate for this folder. Default: the current one.")
]


@policy_app.command("list", cls=PlainCommand)
def list_policy_command(db: Database = None, as_json: AsJson = False) -> None:
    """List the configured rules and the saved permissions."""
    from graph_agent.cli.views.policy import list_policy

    list_policy(resolve_database(db), as_json=as_json)


@policy_app.command("revoke", cls=PlainCommand)
def revoke_permission_command(
    grant: Annotated[str, Argument(metavar="ID", help="Id of a permission; see `policy list`.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a saved permission. Takes effect on the next call."""
    from graph_agent.cli.views.policy import revoke_permission

    revoke_permission(resolve_database(db), grant, as_json=as_json)


@policy_app.command("check", cls=PlainCommand)
def check_policy_command(
    tool: Annotated[str, Argument(metavar="TOOL", help="Tool name or alias.")],
    arguments: Annotated[
        str, Argument(metavar="ARGUMENTS", help="A JSON object, or just the value if one argument is required.")
    ],
    mode: _Mode = None,
    workspace: _Workspace = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the decision for a call, the rule and the reason. Exit code: 0 allow, 3 ask, 4 deny."""
    from graph_agent.cli.views.policy import check_call

    check_call(resolve_database(db), tool, arguments, mode=mode, workspace=workspace, as_json=as_json)


@policy_app.command("test", cls=PlainCommand)
def run_policy_cases_command(
    file: Annotated[str, Argument(metavar="FILE", help="Labelled cases, one JSON object per line.")],
    as_json: AsJson = False,
) -> None:
    """Test the policy against labelled cases. Exit code 1 if a decision is more permissive than its label."""
    from graph_agent.cli.views.policy import run_cases

    run_cases(file, as_json=as_json)


@policy_app.command("show", cls=PlainCommand)
def show_policy_command(mode: _Mode = None, db: Database = None, as_json: AsJson = False) -> None:
    """Show the whole policy in the order of evaluation, with the source of each rule."""
    from graph_agent.cli.views.policy import show_policy

    show_policy(resolve_database(db), mode, as_json=as_json)


tools_app = command_group("List tools, show one, show usage statistics.")

_ModeTools = Annotated[
    str | None, Option("--mode", help="Show what is enabled in this mode. Default: the configured one.")
]


@tools_app.command("list", cls=PlainCommand)
def list_tools_command(mode: _ModeTools = None, as_json: AsJson = False) -> None:
    """List every registered tool with its risk, kind and origin, and whether the model can use it."""
    from graph_agent.cli.views.tools import list_tools

    list_tools(mode, as_json=as_json)


@tools_app.command("show", cls=PlainCommand)
def show_tool_command(
    name: Annotated[str, Argument(metavar="NAME", help="Tool name.")],
    mode: _ModeTools = None,
    as_json: AsJson = False,
) -> None:
    """Show one tool's description and argument schema, as the model receives them."""
    from graph_agent.cli.views.tools import show_tool

    show_tool(name, mode, as_json=as_json)


@tools_app.command("stats", cls=PlainCommand)
def show_statistics_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show how often each tool ran, its results and its run time, over all threads."""
    from graph_agent.cli.views.tools import show_statistics

    show_statistics(resolve_database(db), as_json=as_json)


agents_app = command_group("List the agents that you and this project define, show one.")


@agents_app.command("list", cls=PlainCommand)
def list_agents_command(as_json: AsJson = False) -> None:
    """List the defined agents, each with its tools, model and mode. The model delegates to them with new_task."""
    from graph_agent.cli.views.tools import list_agents

    list_agents(as_json=as_json)


@agents_app.command("show", cls=PlainCommand)
def show_agent_command(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the agent.")], as_json: AsJson = False
) -> None:
    """Show one agent with its instructions. Exit code 1 if it cannot be used."""
    from graph_agent.cli.views.tools import show_agent

    show_agent(name, as_json=as_json)
