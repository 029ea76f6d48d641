"""Calls in the order in which the model made them."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "calls_in_order",
    """
CREATE INDEX ledger_in_order ON ledger (thread_id, seq);
""",
)
