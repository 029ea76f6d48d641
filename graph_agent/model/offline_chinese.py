"""The Chinese wordings of the offline commands; the first that fits the whole text wins."""

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

__all__ = ["CHINESE", "CHINESE_VERBS"]

CHINESE_VERBS = (
    r"(?:请|帮我)?\s*(?:列出|查找|寻找|找|搜索|搜|检索|创建|新建|建立|写入|写|追加|添加|把|将|在|向|往|给|运行|执行|记住"
    r"|读取|阅读|查看|显示|打开|读|看)"
)
"""What a command begins with."""

_IN = r"\s*(?:文件)?(?:中|里)?的?\s*"
_BY = r"\s*(?:替换|改|换)(?:为|成)\s*"
_RANGE = r"(?:\s*的?\s*第?\s*(?P<first>\d{1,9})\s*行?(?:\s*(?:-|–|~|到|至)\s*第?\s*(?P<last>\d{1,9}))?\s*行)?"

CHINESE: tuple[Form, ...] = (
    form(r"(?:显示|查看|列出|看)?(?:一下)?(?:待办事项|待办|任务列表|任务清单)[。！？]?", lambda _: ShowTodo()),
    form(
        r"(?:列出|显示|查看|看看|看)(?:一下)?(?:所有|全部)?(?:当前)?(?:目录|文件夹)?(?:下|中|里)?面?的?(?:所有|全部)?文件[。！？]?",
        lambda _: ListFiles(),
    ),
    form(
        r"列出(?:\s*<F:path>)?\s*(?:目录|文件夹)?\s*(?:下|中|里)?面?的?(?:所有|全部)?(?:文件|内容)?[。！？]?",
        lambda found: ListFiles(folder(found["path"])),
    ),
    form(
        r"(?:查找|寻找|找)(?:所有|全部)?(?:名为)?(?:文件)?\s*<F:path>\s*(?:文件)?[。！？]?",
        lambda found: FindFiles(path(found["path"])),
    ),
    form(
        r"在\s*<F:path>\s*(?:文件)?(?:中|里)?\s*(?:搜索|搜|检索)\s*<B:text>[。！？]?",
        lambda found: SearchText(plain(found["text"]), folder(found["path"])),
    ),
    form(
        r"(?:搜索|搜|检索)\s*<B:text>(?:\s*(?:在|于)\s*<F:path>\s*(?:中|里|下)?)?[。！？]?",
        lambda found: SearchText(plain(found["text"]), folder(found["path"])),
    ),
    form(
        r"(?:创建|新建|建立|写入|写)(?:一个)?(?:新)?(?:文件)?\s*<F:path>\s*[，,]?\s*"
        r"(?:内容为|内容是|内容|写上|写着|包含)\s*[:：]?\s*<T:text>",
        lambda found: CreateFile(path(found["path"]), lines(found["text"])),
    ),
    form(
        r"(?:把|将)\s*<B:text>\s*(?:写入|写到|保存到)\s*(?:文件)?\s*<F:path>[。！？]?",
        lambda found: CreateFile(path(found["path"]), lines(found["text"])),
    ),
    form(
        r"(?:创建|新建|建立)(?:一个)?(?:新)?(?:空)?(?:文件)?\s*<F:path>[。！？]?",
        lambda found: CreateFile(path(found["path"]), ""),
    ),
    form(
        r"(?:向|在|往|给)\s*<F:path>\s*(?:文件)?的?(?:末尾|中|里|后面)?\s*(?:追加|添加|加上)\s*<T:text>",
        lambda found: AppendText(path(found["path"]), plain(found["text"])),
    ),
    form(
        r"(?:把|将)\s*<B:text>\s*(?:追加到|添加到|加到)\s*(?:文件)?\s*<F:path>(?:\s*的?末尾)?[。！？]?",
        lambda found: AppendText(path(found["path"]), plain(found["text"])),
    ),
    form(
        r"(?:追加|添加)\s*<B:text>\s*到\s*(?:文件)?\s*<F:path>(?:\s*的?末尾)?[。！？]?",
        lambda found: AppendText(path(found["path"]), plain(found["text"])),
    ),
    form(
        rf"在\s*<F:path>{_IN}[，,]?\s*(?:把|将)\s*<B:old>{_BY}<B:new>",
        lambda found: ReplaceText(path(found["path"]), plain(found["old"]), plain(found["new"])),
    ),
    form(
        rf"(?:把|将)\s*<F:path>\s*(?:文件)?(?:中|里)的?\s*<B:old>{_BY}<B:new>",
        lambda found: ReplaceText(path(found["path"]), plain(found["old"]), plain(found["new"])),
    ),
    form(r"(?:运行|执行)(?:一下)?(?:命令)?\s*[:：]?\s*<T:text>", lambda found: RunShell(plain(found["text"]))),
    form(r"记住\s*[:：,，]?\s*<T:text>", lambda found: Remember(plain(found["text"]))),
    form(
        rf"(?:读取|阅读|查看|显示|打开|读|看)(?:一下)?(?:文件)?\s*<F:path>{_RANGE}(?:\s*的?内容)?[。！？]?",
        lambda found: ReadFile(path(found["path"]), line_number(found["first"]), line_number(found["last"])),
    ),
)
