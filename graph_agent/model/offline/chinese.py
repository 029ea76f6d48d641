"""The Chinese wordings of the offline commands; the first that fits the whole text wins."""

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

__all__ = ["CHINESE", "CHINESE_VERBS"]

CHINESE_VERBS = (
    r"(?:请|帮我|再|先)*\s*(?:列出|查找|寻找|找|搜索|搜|检索|创建|新建|建立|写入|写|追加|添加|把|将|在|向|往|给|用|替换"
    r"|运行|执行|记住|记下|读取|阅读|查看|显示|打开|读|看)"
)
"""What a command begins with."""

_IN = r"\s*(?:文件)?(?:中|里)?面?的?\s*"
_EVERY = r"(?:(?:所有|全部|每个|每一个)的?\s*)?"
_BY = r"\s*(?:都|全部)?\s*(?:替换|改|换)(?:为|成)\s*"
_FOLDER = r"<F:path>\s*(?:目录|文件夹)?\s*(?:中|里|下)?面?"
_LINES = rf"第?\s*(?P<first>{NUMBER})\s*行?(?:\s*(?:-|–|—|~|～|到|至)\s*第?\s*(?P<last>{NUMBER}))?\s*行"
_READ = r"(?:读取|阅读|查看|显示|打开|读|看)(?:一下)?(?:文件)?"
_FIND = r"(?:查找|寻找|找|搜索|搜)(?:出)?(?:所有|全部)?(?:名为|叫)?(?:的)?"
_COLON = r"(?:\s*[:：]?[ \t]*\n|\s*[:：]?\s*)"


CHINESE: tuple[Form, ...] = (
    form(
        r"(?:显示|查看|列出|看)?(?:一下)?(?:我的)?(?:待办(?:事项)?(?:列表|清单)?|任务列表|任务清单)[。！？]?",
        showing_todo,
        "显示待办",
        "查看待办事项",
    ),
    form(
        r"(?:列出|显示|查看|看看|看)(?:一下)?(?:所有|全部)?(?:当前)?(?:目录|文件夹)?(?:下|中|里)?面?的?(?:所有|全部)?文件[。！？]?",
        listing,
        "列出文件",
        "列出当前目录下的所有文件",
    ),
    form(
        r"(?:看看|看|列出)?(?:一下)?(?:这里|当前|这个)?(?:目录|文件夹)?(?:下|中|里)?面?(?:都)?有(?:些)?(?:什么|哪些)文件[。！？]?",
        listing,
        "有哪些文件",
        "看看当前目录下有什么文件",
    ),
    form(r"列出(?:当前|这个)(?:目录|文件夹)(?:的?内容)?[。！？]?", listing, "列出当前目录"),
    form(
        r"列出(?:\s*<F:path>)?\s*(?:目录|文件夹)?\s*(?:下|中|里)?面?的?(?:所有|全部)?(?:文件|内容)?[。！？]?",
        listing,
        "列出 src",
        "列出 src 目录下的文件",
    ),
    form(
        rf"在\s*{_FOLDER}\s*{_FIND}文件\s*<F:pattern>[。！？]?",
        finding,
        "在 src 中查找文件 *.py",
    ),
    form(
        rf"{_FIND}(?:文件)?\s*(?=\S*[*?.])<F:pattern>\s*的?(?:文件)?[。！？]?",
        finding,
        "查找文件 *.py",
        "查找所有 *.py 文件",
    ),
    form(rf"{_FIND}文件\s*<F:pattern>[。！？]?", finding, "查找文件 Makefile"),
    form(rf"在\s*{_FOLDER}\s*(?:搜索|搜|检索|查找|找)\s*<B:text>[。！？]?", searching, "在 src 中搜索 合计"),
    form(
        rf"(?:搜索|搜|检索)\s*<B:text>(?:\s*(?:在|于)\s*{_FOLDER})?[。！？]?",
        searching,
        "搜索 合计",
        "搜索 合计 在 src",
    ),
    form(
        r"(?:创建|新建|建立|写入|写)(?:一个)?(?:新)?的?(?:文件)?(?:叫做?|名为)?\s*<F:path>\s*[，,]?\s*"
        rf"(?:(?:并)?写入|内容为|内容是|内容|写上|写着|包含){_COLON}<T:text>",
        creating,
        "创建 a.txt 内容为 你好",
        "新建文件 a.txt，内容为：\n  一\n  二",
    ),
    form(
        r"(?:把|将)\s*<B:text>\s*(?:写入|写到|保存到)\s*(?:文件)?\s*<F:path>[。！？]?",
        creating,
        "把“你好”写入 a.txt",
    ),
    form(
        r"(?:创建|新建|建立)(?:一个)?(?:新)?的?(?:空)?(?:白)?的?(?:文件)?(?:叫做?|名为)?\s*<F:path>[。！？]?",
        creating,
        "创建空文件 a.txt",
    ),
    form(
        r"(?:向|在|往|给)\s*<F:path>\s*(?:文件)?的?(?:末尾|最后|中|里|后面)?\s*(?:追加|添加|加上)(?:一行)?"
        rf"{_COLON}<T:text>",
        appending,
        "向 a.txt 追加 你好",
        "在 a.txt 末尾追加一行：你好",
    ),
    form(
        r"(?:把|将)\s*<B:text>\s*(?:追加到|添加到|加到)\s*(?:文件)?\s*<F:path>(?:\s*的?(?:末尾|最后|中|里))?[。！？]?",
        appending,
        "把“你好”追加到 a.txt",
    ),
    form(
        r"(?:追加|添加)\s*<B:text>\s*到\s*(?:文件)?\s*<F:path>(?:\s*的?(?:末尾|最后|中|里))?[。！？]?",
        appending,
        "追加 你好 到 a.txt",
    ),
    form(
        rf"在\s*<F:path>{_IN}[，,]?\s*(?:把|将)\s*{_EVERY}<B:old>{_BY}<B:new>",
        replacing,
        "在 a.txt 中把 foo 替换为 bar",
    ),
    form(
        rf"(?:把|将)\s*<F:path>\s*(?:文件)?(?:中|里)面?的?\s*{_EVERY}<B:old>{_BY}<B:new>",
        replacing,
        "把 a.txt 中的 foo 替换为 bar",
        "把 a.txt 里所有的“foo”改成“b a r”",
    ),
    form(
        rf"替换\s*<F:path>\s*(?:文件)?(?:中|里)面?的?\s*{_EVERY}<B:old>\s*(?:为|成)\s*<B:new>",
        replacing,
        "替换 a.txt 中的 foo 为 bar",
    ),
    form(
        rf"用\s*<B:new>\s*替换\s*<F:path>\s*(?:文件)?(?:中|里)面?的?\s*{_EVERY}<B:old>[。！？]?",
        replacing,
        "用 bar 替换 a.txt 中的 foo",
    ),
    form(
        rf"(?:运行|执行)(?:一下)?(?:命令)?{_COLON}<T:text>",
        running,
        "运行 ls -la",
        "执行命令：make test",
    ),
    form(
        r"(?:记住|记下)\s*[:：,，]?\s*<T:text>",
        remembering,
        "记住 我喜欢制表符",
    ),
    form(
        rf"{_READ}\s*<F:path>\s*的?\s*(?:从\s*)?第?\s*(?P<first>{NUMBER})\s*行(?:开始|起|往后|之后)[。！？]?",
        reading_from,
        "读取 prices.py 从第4行开始",
    ),
    form(
        rf"{_READ}\s*<F:path>\s*的?\s*(?:的)?前\s*(?P<last>{NUMBER})\s*行[。！？]?",
        reading_to,
        "读取 prices.py 的前3行",
    ),
    form(
        rf"{_READ}\s*<F:path>(?:\s*[，,]?\s*的?\s*(?:从\s*)?{_LINES})?(?:\s*的?内容)?[。！？]?",
        reading,
        "读取 prices.py",
        "查看 prices.py 的内容",
        "读取 prices.py 第2到4行",
        "读取 prices.py 的第二行",
    ),
)
