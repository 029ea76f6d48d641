"""A row of the one table of programs, and the variables that decide which programs run.

`policy.shell.program_table` finds the row of a program. Deny, ask and allow rules, "always", the refusal of
destructive commands and the risk of a call all read it; `policy.shell.arguments` reads a command by its row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = [
    "RUN_AS_CODE",
    "Effect",
    "Program",
    "WrapperSyntax",
    "describe_program",
    "steers_programs",
]

CodeUse = Literal["", "shell", "stdin", "words", "index", "language", "editor"]
Effect = Literal["", "writes", "script", "deletes", "discards", "rewrites", "network", "privilege", "outside"]
"""What running a program comes to, beside what its options add; "" is not known.

writes: it changes files that it names or the repository. script: it runs what files of the project say. deletes,
discards: files, or changes that were not committed, are gone afterwards. rewrites: the history of a repository.
network: it contacts a host. privilege: it runs as another user. outside: something elsewhere does the work.
"""


@dataclass(frozen=True)
class WrapperSyntax:
    """How a wrapper takes the command that it runs: its options, and what else stands before that command."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with a value."""
    operands: int = 0
    """Words between the options and the command."""
    queries: str = ""
    """Letters of options with which it only looks the command up."""


@dataclass(frozen=True)
class Program:
    """One row of the table; the defaults describe a program that is not in it."""

    code: CodeUse = ""
    """Where it takes code from.

    shell: its words and its input are shell code. stdin: its input is. words: its words may be, one by one and
    together. index: a built-in that evaluates the index of a variable, quoted or not, as in `test -v 'a[$(id)]'`.
    language: its words and its input are code of another language. editor: a letter or a sign in its words or its
    input lets a command follow.
    """
    wraps: bool = False
    """From some word on, its words are a command."""
    wraps_after: frozenset[str] = frozenset()
    """The same, but only after one of these words."""
    wraps_until: frozenset[str] = frozenset()
    """After each of these options follows a command, up to `;` or `+`."""
    syntax: WrapperSyntax | Literal["unknown"] | None = None
    """Of a wrapper whose command an allow rule must cover as well; "unknown": where it begins cannot be told."""
    runs_here: bool = False
    """It runs code in the shell itself, which changes with it."""
    runs_any: bool = False
    """What it does depends on words or files that may change, so "always" never stores a rule for it."""
    letters: str = ""
    """Harmless short options as getopt(3) has them: a colon follows one with a value, two follow one whose value
    can only be in the same word, and `#` stands for a number, as in `head -5`. All others count as harmful."""
    options: str = ""
    """Other harmless options as they are typed, in full, with `=` after one that has a value: `--color -name=`."""
    risky_letters: str = ""
    """Short options, in the same notation, by which it writes a file, runs a program, or does what a file says."""
    risky_options: str = ""
    """Other options of this kind."""
    content_options: str = ""
    """Harmless options by which it shows the contents of files, which it does not do without them."""
    passes_on: bool = False
    """What it runs is given some of its arguments, so that options which are harmless for most programs are."""
    options_first: bool = False
    """Its options end with its first operand: what follows is for the program or the script named by that."""
    bundle_first: bool = False
    """Its first word may be a bundle of short options without a dash."""
    has_options: bool = True
    """If not, words that begin with a dash are no options of it: `echo -x`."""
    prints_version: bool = False
    """With `--version` alone it looks at no file of the project."""
    only_reads: bool = False
    """With harmless options it writes no file, runs nothing and contacts nobody, whatever its operands are."""
    obeys_folder: bool = False
    """Settings of the folder that it works in may make it run a program."""
    reads: Literal["contents", "names", "nothing"] = "contents"
    """What it reads of the files it names: their contents, names and properties only, or nothing at all."""
    pattern_first: bool = False
    """Its first operand is a pattern or a script unless -e or -f gives one."""
    names_programs: bool = False
    """It prints where a program is, which something else may then run."""
    walks: Literal["", "always", "recursive"] = ""
    """Whether it reads all files below the folders it names, or the current one; or only with -r."""
    handles: Literal["", "removes", "changes", "copies", "packs", "unpacks", "tree"] = ""
    """What it does to folders with all that is in them. Of what copies, the last argument is where to; what unpacks
    writes below the current folder, and tree is a command of git that writes anywhere in the working tree."""
    follows: str = ""
    """Options, as a regular expression, with which it follows links out of the folders that it goes through."""
    effect: Effect = ""
    """What running it comes to."""
    checked_as: str = ""
    """The rules for its arguments where they go beyond options; see `policy.shell.arguments`."""
    overwrites: Literal["", "last", "all", "of="] = ""
    """Which of its arguments it overwrites."""
    changes_paths: Literal["", "nothing", "in place", "links", "moves"] = ""
    """What it may change about where paths lead, for the commands after it, beside what only reads.

    "": any path. nothing: it writes no file. in place: it changes only what it names, and makes no link. links: it
    makes links or copies them, under the names it is given. moves: it moves what it is given.
    """
    writes_by: Literal["", "links", "folders"] = ""
    """Which links it follows when it writes.

    links: also an operand that is itself a link. folders: only links among the folders on the way to an operand.
    """
    changes_shell: bool = False
    """A built-in that gives a name, a variable or an option another meaning, or runs code that may."""
    variable_option: str = ""
    """The option of a built-in that names a variable to set."""
    folder_options: str = ""
    """Options that name the folder it works in, or, of a wrapper, the folder of what it runs."""
    formats_with: str | None = ""
    """What an argument looks like, as a regular expression, with which it destroys what is on a disk; None if it
    does so whatever its arguments are."""

    @property
    def is_listed(self) -> bool:
        """Whether the row says anything about options."""
        return bool(self.letters or self.options)

    @cached_property
    def harmless_letters(self) -> Mapping[str, str]:
        """The short options in `letters`, each with its colons."""
        return _letters(self.letters)

    @cached_property
    def harmful_letters(self) -> Mapping[str, str]:
        """The same of `risky_letters`."""
        return _letters(self.risky_letters)

    @cached_property
    def harmless_options(self) -> Mapping[str, bool]:
        """The options in `options`, and whether they have a value."""
        return {option.rstrip("="): option.endswith("=") for option in self.options.split()}

    @cached_property
    def harmful_options(self) -> tuple[str, ...]:
        """Those in `risky_options`."""
        return tuple(self.risky_options.split())


def _letters(text: str) -> Mapping[str, str]:
    return dict(re.findall(r"([^:\s])(:*)", text))


RUN_AS_CODE = re.compile(
    r"\w*(?:COMMAND|PAGER|EDITOR|ASKPASS|BROWSER)|VISUAL|SHELL|LESSOPEN|LESSCLOSE|GIT_SSH|GIT_EXTERNAL_DIFF"
    r"|GIT_CONFIG_VALUE_\d+|GIT_CONFIG_PARAMETERS|PS[0-4]"
)
"""Variables whose value programs run."""
_STEERS_PROGRAMS = re.compile(
    r"PATH|CDPATH|ENV|BASH_\w+|SHELLOPTS|BASHOPTS|IFS|PROMPT_COMMAND|(?:LD|DYLD|GIT|PERL5?|RUBY|LUA|NODE|PYTHON)_?\w*"
    r"|CLASSPATH|_?JAVA_(?:TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|GCONV_PATH|(?:GNU)?MAKEFLAGS|MAKEFILES|RUSTC?_?WRAPPER"
    r"|GOFLAGS|npm_config_\w+|AWKPATH|AWKLIBPATH|RIPGREP_CONFIG_PATH|LESS\w*|TAR_OPTIONS|GREP_OPTIONS|GREP_COLORS?"
)
"""Variables that decide which program or which code runs under a name, or what it does there."""
_HARMLESS_VARIABLES = re.compile(
    r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GREP_COLORS?|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|HASHSEED)|NODE_ENV|LESSCHARSET"
)


def steers_programs(variable: str) -> bool:
    """Whether a variable decides what runs under a name, other than one whose value is itself code."""
    is_other = _HARMLESS_VARIABLES.fullmatch(variable) or RUN_AS_CODE.fullmatch(variable)
    return not is_other and _STEERS_PROGRAMS.fullmatch(variable) is not None


_EFFECTS: Mapping[Effect, str] = {
    "": "its effect is not known",
    "writes": "writes what it names",
    "script": "runs what files of the project say",
    "deletes": "deletes",
    "discards": "discards changes",
    "rewrites": "rewrites history",
    "network": "uses the network",
    "privilege": "runs as another user",
    "outside": "hands work to a program outside the sandbox",
}


def describe_program(program: Program) -> str:
    """The row in words, for people who ask what it says."""
    if program.only_reads:
        what = {"contents": "contents", "names": "names and properties", "nothing": "no files"}[program.reads]
        facts = [f"only reads: {what}"]
    elif program.code:
        facts = ["runs code that it is given"]
    elif program.wraps or program.wraps_after:
        facts = ["runs another program"]
    else:
        facts = [_EFFECTS[program.effect]]
    if program.walks:
        facts.append("goes through folders" if program.walks == "always" else "goes through folders with -r")
    options = (*program.harmful_options, *(f"-{one}" for one in program.harmful_letters))
    if options:
        facts.append("options that write, run or read more: " + " ".join(options))
    return "; ".join(facts)
