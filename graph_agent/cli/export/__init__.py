"""A thread as a page to read or to hand on: Markdown, or one HTML file that needs nothing else."""

__all__: list[str] = []
