"""A simple command of a shell text, and what is known of a word of it before it runs."""

from dataclasses import dataclass, field

__all__ = ["SimpleCommand"]


@dataclass(frozen=True)
class SimpleCommand:
    """One program, or built-in, with its arguments; leading assignments come first."""

    words: tuple[str, ...]
    """After quote and escape removal; what is known only when it runs stands as it was written."""
    stdin: str = field(default="", compare=False)
    """Text it is fed, as far as that stands in the command line: a here-document, a here-string, an `echo`."""
    patterns: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of words that the shell would replace by the names of files they match."""
    shell: tuple[int | str, ...] = field(default=(), compare=False)
    """Numbers of the shells within shells that it is run in; none for the shell of the text itself. A name among
    them is that of a function whose body it stands in."""
    folder: str = field(default="", compare=False)
    """Where it is run, from the folder the text starts in, as far as that can be told."""

    @property
    def text(self) -> str:
        """The words joined by one blank: what rules match."""
        return " ".join(self.words)
