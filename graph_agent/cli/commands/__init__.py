"""The commands as Typer declares them; each body loads its own modules."""
