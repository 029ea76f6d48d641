"""Tools on files and folders."""

__all__: list[str] = []
