"""The English wordings of the offline commands; the first that fits the whole text wins."""

from graph_agent.model.offline.commands import (
    NUMBER,
    Form,
    appending,
    creating,
    finding,
    form,
    listing,
    reading,
    reading_from,
    reading_to,
    remembering,
    replacing,
    running,
    searching,
    showing_todo,
)

__all__ = ["ENGLISH", "ENGLISH_VERBS"]

ENGLISH_VERBS = (
    r"(?:please\s+)?(?:list|show|ls|dir|find|search|grep|look\s+(?:for|at)|read|cat|open|print|view|display|create"
    r"|write|make|save|put|append|add|replace|change|in|run|execute|exec|remember)\b"
)
"""What a command begins with: a "then" that is not followed by this belongs to the text around it."""

_A_FILE = r"(?:(?:an?|the)\s+)?(?:new\s+)?(?:empty\s+)?(?:text\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
_THE_FILE = r"(?:the\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
_FOLDER = r"(?:the\s+|this\s+)?(?:folder\s+|directory\s+)?<F:path>(?:\s+(?:folder|directory))?"
_ALL_FILES = r"(?:all\s+)?(?:the\s+)?files|here|everywhere"
_IN_FOLDER = rf"(?:\s+(?:(?:in|under|inside)\s+(?:{_ALL_FILES}|{_FOLDER})|here|everywhere))?"
_COLON = r"(?:\s*:[ \t]*\n|\s*:\s*|\s+)"
_THE_TEXT = r"(?:\s+the\s+(?:contents?|text|words?|lines?)(?!\s+of\b)|\s+(?:contents?|text|words?|lines?)(?=\s*:))?"
_SAYING = rf"\s*,?\s+(?:with|saying|containing|that\s+says|that\s+contains|and\s+write){_THE_TEXT}{_COLON}<T:text>"
_READ = r"(?:read|show|cat|open|print|view|display|look\s+at)\s+(?!-)(?:me\s+)?"
_OF_FILE = rf"(?:the\s+)?(?:contents?\s+of\s+)?{_THE_FILE}<F:path>"
_RANGE = rf"lines?\s+(?P<first>{NUMBER})(?:\s*(?:-|–|to|through|and)\s*(?:line\s+)?(?P<last>{NUMBER}))?"
_EVERY = r"(?:(?:all|every)\s+(?:(?:occurrences?|instances?)\s+of\s+)?)?"
_BY = r"\s+(?:by|with|to|into)\s+"


ENGLISH: tuple[Form, ...] = (
    form(
        r"(?:(?:show|list|read|view|display)\s+(?:me\s+)?)?(?:the\s+|my\s+)?to-?do(?:s|\s+list)?[.!?]?",
        showing_todo,
        "show todo",
        "show my to-do list",
    ),
    form(
        r"(?!.*\bof\s+\S*\.\w)(?:list|show|ls|dir)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?:files|folders|contents|everything)"
        rf"(?:\s+(?:in|of|under|inside)\s+{_FOLDER})?(?:\s+here)?[.!?]?",
        listing,
        "list the files",
        "show all files in src",
    ),
    form(
        rf"(?:what|which)\s+files\s+are\s+(?:there|here|(?:(?:there|here)\s+)?in\s+{_FOLDER})[.!?]?",
        listing,
        "what files are there",
        "which files are in src?",
    ),
    form(
        rf"(?:list|ls|dir)(?:\s+(?!-){_FOLDER})?[.!?]?",
        listing,
        "list",
        "list src",
    ),
    form(
        r"find\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?files?\s+(?:named\s+|called\s+|matching\s+|like\s+)?"
        rf"(?!in\s)<F:pattern>{_IN_FOLDER}",
        finding,
        "find files *.py",
        "find all files named prices.py in src",
    ),
    form(
        rf"find\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?=\S*[*?.])<F:pattern>(?:\s+files?)?{_IN_FOLDER}",
        finding,
        "find *.py",
        "find all *.py files in src",
    ),
    form(
        rf"find\s+(?:the\s+(?:text|words?|phrase)\s+)?<B:text>\s+in\s+(?:{_ALL_FILES}|{_FOLDER})",
        searching,
        "find total in src",
    ),
    form(r"find\s+(?!files?\Z|all\Z|me\Z)<F:pattern>", finding, "find Makefile"),
    form(rf"search\s+in\s+{_FOLDER}\s+for\s+<B:text>", searching, "search in src for total"),
    form(
        r"(?:search\s+for|look\s+for|search|grep)\s+(?!-|for\Z|in\Z)(?:the\s+(?:text|words?|phrase)\s+)?"
        rf"<B:text>{_IN_FOLDER}",
        searching,
        "search total",
        'search for "two words" in src',
    ),
    form(
        rf"(?:create|write|make)\s+{_A_FILE}<F:path>{_SAYING}",
        creating,
        "create a.txt with hello world",
        "write a file called a.txt saying hello",
        "create a.txt containing:\n  one\n  two",
    ),
    form(rf"(?:create|write|make)\s+{_A_FILE}<F:path>:\s+<T:text>", creating, "create a.txt: hello"),
    form(
        rf"(?:write|save|put)\s+<B:text>\s+(?:to|into|in)\s+{_A_FILE}<F:path>",
        creating,
        "write hello to a.txt",
    ),
    form(
        rf"(?:create|make)\s+(?=.*[./]){_A_FILE}<F:path>",
        creating,
        "create an empty file a.txt",
    ),
    form(
        rf"(?:append|add)\s+to\s+{_THE_FILE}<F:path>(?:\s+(?:with|saying|the\s+text|the\s+line))?{_COLON}<T:text>",
        appending,
        "append to a.txt: hello",
    ),
    form(
        r"(?:append|add)\s+(?!(?:a|the)\s+(?:new\s+)?(?:text|line)\s+to\b)"
        r"(?:(?:a|the)\s+(?:new\s+)?(?:text|line)\s+(?:saying\s+)?)?"
        rf"<B:text>\s+(?:to|at)\s+(?:the\s+end\s+of\s+)?{_THE_FILE}<F:path>",
        appending,
        "append hello to a.txt",
        'add the line "hello" to the end of a.txt',
    ),
    form(
        rf"(?:replace|change)\s+{_EVERY}<B:old>{_BY}<B:new>\s+(?:everywhere\s+)?in\s+{_THE_FILE}<F:path>",
        replacing,
        "replace foo by bar in a.txt",
        "replace all occurrences of 'foo' with 'b a r' in a.txt",
    ),
    form(
        rf"in\s+{_THE_FILE}<F:path>\s*,?\s+(?:replace|change)\s+{_EVERY}<B:old>{_BY}<B:new>",
        replacing,
        "in a.txt, replace foo with bar",
    ),
    form(
        r"(?:run|execute|exec)(?:\s+the\s+(?:shell\s+)?command\s*:?\s*|\s+(?:shell\s+)?command\s*:\s*|\s*:\s*|\s+)"
        r"(?!(?:the|my|all|this|that|these|an?)\s)<T:text>",
        running,
        "run ls -la | wc -l",
        "run the command: make test",
    ),
    form(
        r"remember(?:\s+that\s*:?\s+|\s*:\s*|\s+)<T:text>",
        remembering,
        "remember that I like tabs",
    ),
    form(
        rf"{_READ}(?:the\s+)?first\s+(?:(?P<last>{NUMBER})\s+)?lines?\s+(?:of|from|in)\s+{_OF_FILE}[.!?]?",
        reading_to,
        "show the first 3 lines of prices.py",
    ),
    form(
        rf"{_READ}(?:the\s+)?{_RANGE}\s+(?:of|from|in)\s+{_OF_FILE}[.!?]?", reading, "read lines 2-4 of prices.py"
    ),
    form(
        rf"{_READ}{_THE_FILE}<F:path>:(?P<first>{NUMBER})(?:-(?P<last>{NUMBER}))?[.!?]?",
        reading,
        "read prices.py:2-4",
    ),
    form(
        rf"{_READ}{_OF_FILE},?\s+(?:starting\s+)?(?:from|at)\s+line\s+(?P<first>{NUMBER})(?:\s+on(?:wards)?)?[.!?]?",
        reading_from,
        "read prices.py from line 4",
    ),
    form(
        rf"{_READ}{_OF_FILE}(?:,?\s+(?:from\s+)?{_RANGE})?[.!?]?",
        reading,
        "read prices.py",
        "show me the contents of prices.py",
        "read prices.py lines 2-4",
    ),
)
