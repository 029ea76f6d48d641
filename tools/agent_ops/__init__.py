"""Tools for the agent's own work: what it remembers, and what it plans to do."""

__all__: list[str] = []
