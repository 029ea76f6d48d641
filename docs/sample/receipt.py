"""Format a receipt."""


def fmt(lines: list[str], total: float) -> str:
    """The lines of the basket, then the total."""
    return "\n".join([*lines, f"total {total:.2f}"])
