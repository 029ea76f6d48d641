"""How a command was understood, in words: what a person sees of it before it may run."""

from collections.abc import Iterator

from policy import CallFacts, ShellText

__all__ = ["command_in_words"]


def command_in_words(facts: CallFacts, text: ShellText) -> str:
    """The simple commands in it where there are several, what it writes, what is unclear, and where it starts."""
    return "\n".join(_lines(facts, text))


def _lines(facts: CallFacts, text: ShellText) -> Iterator[str]:
    if [command.text for command in text.commands] != [facts.command]:
        yield from (f"runs    {command.text}" for command in text.commands)
    for path in facts.redirects:
        yield f"writes  {path.resolved}{'' if path.inside else '  (not in the workspace)'}"
    if text.not_plain:
        yield f"unclear {text.not_plain}"
    yield f"in      {facts.cwd or facts.workspace}"
