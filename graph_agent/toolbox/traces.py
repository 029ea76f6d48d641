"""The processes of recorded attempts: what the journal and the blobs hold, as what the shell tool looks for."""

import os

from graph_agent.calls import process_mark
from graph_agent.ports import Blobs, JournalRow
from tools.shell_ops.processes import Process, Traces, belonging, send

__all__ = ["Process", "Traces", "belonging", "recorded_traces", "send"]


def recorded_traces(row: JournalRow, thread_id: str, blobs: Blobs) -> Traces | None:
    """What the processes of this attempt are known by; None for one that started none."""
    if not row.process_group or not row.process_started:
        return None
    spool = os.path.realpath(blobs.spool(thread_id, row.call_id, row.attempt))
    mark = process_mark(row.owner, row.call_id, row.attempt)
    return Traces(row.process_group, row.process_started, mark, spool)
