"""The English wordings of the offline commands; the first that fits the whole text wins."""

from graph_agent.model.offline_commands import (
    AppendText,
    CreateFile,
    FindFiles,
    ListFiles,
    ReadFile,
    Remember,
    ReplaceText,
    RunShell,
    SearchText,
    ShowTodo,
)
from graph_agent.model.offline_forms import Form, folder, form, line_number, lines, path, plain

__all__ = ["ENGLISH", "ENGLISH_VERBS"]

ENGLISH_VERBS = (
    r"(?:please\s+)?(?:list|show|ls|dir|find|search|grep|look\s+for|read|cat|open|print|view|display|create|write|make"
    r"|save|put|append|add|replace|change|in|run|execute|exec|remember)\b"
)
"""What a command begins with: a "then" that is not followed by this belongs to the text around it."""

_A_FILE = r"(?:(?:an?|the)\s+)?(?:new\s+)?(?:empty\s+)?(?:text\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
_THE_FILE = r"(?:the\s+)?(?:file\s+)?"
_FOLDER = r"(?:the\s+|this\s+)?<F:path>(?:\s+(?:folder|directory))?"
_SAYING = (
    r"\s*,?\s+(?:with|saying|containing|that\s+says|that\s+contains|and\s+write)"
    r"\s+(?:the\s+)?(?:(?:contents?|text|words?)\b)?\s*:?\s*<T:text>"
)
_RANGE = r"(?:,?\s+(?:from\s+)?lines?\s+(?P<first>\d{1,9})(?:\s*(?:-|–|to|through)\s*(?P<last>\d{1,9}))?)?"

ENGLISH: tuple[Form, ...] = (
    form(r"(?:show|list|read)\s+(?:me\s+)?(?:the\s+|my\s+)?to-?do(?:s|\s+list)?[.!?]?", lambda _: ShowTodo()),
    form(
        r"(?:list|show|ls|dir)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?:files|folders|contents|everything)"
        rf"(?:\s+(?:in|of|under|inside)\s+{_FOLDER})?[.!?]?",
        lambda found: ListFiles(folder(found["path"])),
    ),
    form(rf"(?:list|ls|dir)(?:\s+{_FOLDER})?[.!?]?", lambda found: ListFiles(folder(found["path"]))),
    form(
        r"find\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?:files?\s+)?(?:named\s+|called\s+|matching\s+|like\s+)?<F:path>",
        lambda found: FindFiles(path(found["path"])),
    ),
    form(
        r"(?:search|grep|look)\s+(?:for\s+)?<B:text>(?:\s+in\s+(?:the\s+)?(?:files?\s+)?<F:path>)?",
        lambda found: SearchText(plain(found["text"]), folder(found["path"])),
    ),
    form(
        rf"(?:create|write|make)\s+{_A_FILE}<F:path>{_SAYING}",
        lambda found: CreateFile(path(found["path"]), lines(found["text"])),
    ),
    form(
        rf"(?:write|save|put)\s+<B:text>\s+(?:to|into|in)\s+{_A_FILE}<F:path>",
        lambda found: CreateFile(path(found["path"]), lines(found["text"])),
    ),
    form(rf"(?:create|make)\s+(?=.*[./]){_A_FILE}<F:path>", lambda found: CreateFile(path(found["path"]), "")),
    form(
        rf"(?:append|add)\s+to\s+{_THE_FILE}<F:path>\s*(?::|\s(?:with|saying|the\s+text|the\s+line))\s*<T:text>",
        lambda found: AppendText(path(found["path"]), plain(found["text"])),
    ),
    form(
        r"(?:append|add)\s+(?:the\s+(?:text|line)\s+)?<B:text>"
        rf"\s+to\s+(?:the\s+end\s+of\s+)?{_THE_FILE}<F:path>",
        lambda found: AppendText(path(found["path"]), plain(found["text"])),
    ),
    form(
        rf"(?:replace|change)\s+<B:old>\s+(?:by|with|to)\s+<B:new>\s+in\s+{_THE_FILE}<F:path>",
        lambda found: ReplaceText(path(found["path"]), plain(found["old"]), plain(found["new"])),
    ),
    form(
        rf"in\s+{_THE_FILE}<F:path>\s*,?\s+(?:replace|change)\s+<B:old>\s+(?:by|with|to)\s+<B:new>",
        lambda found: ReplaceText(path(found["path"]), plain(found["old"]), plain(found["new"])),
    ),
    form(
        r"(?:run|execute|exec)\s+(?:the\s+)?(?:shell\s+)?(?:command\b\s*)?:?\s*<T:text>",
        lambda found: RunShell(plain(found["text"])),
    ),
    form(r"remember\s+(?:that\s+)?:?\s*<T:text>", lambda found: Remember(plain(found["text"]))),
    form(
        r"(?:read|show|cat|open|print|view|display)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:file\s+)?"
        rf"<F:path>{_RANGE}[.!?]?",
        lambda found: ReadFile(path(found["path"]), line_number(found["first"]), line_number(found["last"])),
    ),
)
