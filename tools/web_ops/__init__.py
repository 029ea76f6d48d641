"""Tools that access the web."""

__all__: list[str] = []
