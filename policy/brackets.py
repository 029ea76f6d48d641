"""Where a nested part of a shell text ends."""

__all__ = ["closing_backtick", "closing_parenthesis"]


def closing_backtick(text: str, start: int) -> int:
    """Position of the backtick that ends what starts here; the end of the text when there is none."""
    position = start
    while position < len(text) and text[position] != "`":
        position += 2 if text[position] == "\\" else 1
    return min(position, len(text))


def closing_parenthesis(text: str, start: int) -> int:
    """Position of the parenthesis that ends what starts here, quotes considered; the end when there is none."""
    depth, position, quote = 1, start, ""
    while position < len(text):
        char = text[position]
        if char == "\\" and quote != "'":
            position += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return position
        position += 1
    return len(text)
