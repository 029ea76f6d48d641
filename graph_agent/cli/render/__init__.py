"""Turns events and questions into lines on the terminal's normal scrollback."""

__all__: list[str] = []
