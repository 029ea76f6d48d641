"""Tools that run commands."""

__all__: list[str] = []
