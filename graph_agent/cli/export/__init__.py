"""A thread as a page to read or to hand on: Markdown, or one self-contained HTML file."""

__all__: list[str] = []
