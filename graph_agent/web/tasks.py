"""Queued tasks and the workers that run them: the list, and one task, which can be cancelled or retried."""

from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph_agent.config.paths import own_command
from graph_agent.web.live import Item, Region, short_id
from graph_agent.web.rendering import render
from graph_agent.web.site import Form, Outcome, Site, address, number_in
from graph_agent.worker import tasks as queue
from graph_agent.worker.tasks import TaskStatus, TaskView

__all__ = ["task_list_regions", "task_regions", "task_routes"]

_PER_PAGE = 40
_ENDED = ("done", "failed", "cancelled")


def task_routes(site: Site) -> list[Route]:
    """The pages and forms of tasks."""

    def task_list(request: Request) -> Response:
        regions, total = task_list_regions(site, request)
        return site.page(
            request,
            "tasks.html",
            title="Tasks",
            regions=regions,
            command=own_command(),
            page=number_in(request, "page"),
            pages=max(-(-total // _PER_PAGE), 1),
            status=request.query_params.get("status", ""),
            statuses=get_args(TaskStatus),
        )

    def task(request: Request) -> Response:
        regions, view = task_regions(site, request)
        title = " ".join(view.task.prompt.split())[:80] or f"Task {view.task.task_id}"
        return site.page(request, "task.html", title=title, regions=regions)

    async def cancel(form: Form) -> Outcome:
        view = await queue.cancel_task(site.database, form.require("id"))
        return Outcome([f"Task {queue.short_id(view.task.task_id)} is cancelled."], form.back())

    async def retry(form: Form) -> Outcome:
        view = await queue.retry_task(site.database, form.require("id"))
        return Outcome([f"Task {queue.short_id(view.task.task_id)} is queued again."], form.back())

    return [
        Route("/tasks", task_list),
        Route("/task", task),
        Route("/task/cancel", site.action(cancel), methods=["POST"]),
        Route("/task/retry", site.action(retry), methods=["POST"]),
    ]


def task_list_regions(site: Site, request: Request) -> tuple[list[Region], int]:
    """The workers and one page of the tasks, newest first; and how many tasks match the filter."""
    status = request.query_params.get("status", "")
    views = [view for view in queue.list_tasks(site.database) if status in ("", view.status)]
    workers = queue.live_workers(site.database)
    start = (number_in(request, "page") - 1) * _PER_PAGE
    rows = [
        Item(
            short_id("task", view.task.task_id),
            render("_task_row.html", {"address": address, "task": view.task, "view": view}),
            "row",
        )
        for view in views[start : start + _PER_PAGE]
    ]
    running = Item("workers-now", render("_workers.html", {"command": own_command(), "workers": workers}))
    return [Region("workers", [running]), Region("tasks", rows)], len(views)


def task_regions(site: Site, request: Request) -> tuple[list[Region], TaskView]:
    """One task, and what can be done with it.

    Raises:
        UnknownId: there is no such task.
    """
    view = queue.find_task(site.database, request.query_params.get("id", ""))
    here = address("/task", id=view.task.task_id)
    values = site.values(back=here, has_ended=view.status in _ENDED, task=view.task, view=view)
    return [Region("task", [Item("task-facts", render("_task.html", values))])], view
