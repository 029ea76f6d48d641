"""The English and Chinese phrases of the offline commands, for `offline.parser`. The first that fits wins."""

__all__ = ["CHINESE_PHRASES", "CHINESE_VERBS", "ENGLISH_PHRASES", "ENGLISH_VERBS"]

ENGLISH_VERBS = (
    r"(?:please\s+)?(?:list|show|ls|dir|find|search|grep|look\s+(?:for|at)|read|cat|open|print|view|display|create"
    r"|write|make|save|put|append|add|replace|change|in|run|execute|exec|remember)\b"
)
"""What a command begins with: a "then" without one of these after it belongs to the text around it."""

ENGLISH_PHRASES = r"""
END: [.!?]?
COLON: (\s*:[\t\x20]*\n|\s*:\s*| )
A_FILE: ((an?|the) )?(new )?(empty )?(text )?(file )?(called |named )?
THE_FILE: (the )?(file )?(called |named )?
FOLDER: (the |this )?(folder |directory )?<F:path>( (folder|directory))?
ALL_FILES: (all )?(the )?files|here|everywhere
IN_FOLDER: ( ((in|under|inside) (<ALL_FILES>|<FOLDER>)|here|everywhere))?
THE_TEXT: ( the (contents?|text|words?|lines?)(?! of\b)| (contents?|text|words?|lines?)(?=\s*:))?
SAYING: \s*,? (with|saying|containing|that says|that contains|and write)<THE_TEXT><COLON><T:text>
READ: (read|show|cat|open|print|view|display|look at) (?!-)(me )?
OF_FILE: (the )?(contents? of )?<THE_FILE><F:path>
RANGE: lines? <N:first>(\s*(-|–|to|through|and)\s*(line )?<N:last>)?
EVERY: ((all|every) ((occurrences?|instances?) of )?)?
BY: \s+(by|with|to|into)\s+
todo: ((show|list|read|view|display) (me )?)?(the |my )?to-?do(s| list)?<END>
  - show todo
  - show my to-do list
list: (?!.*\bof \S*\.\w)(list|show|ls|dir) (me )?(all )?(the )?(files|folders|contents|everything)
    ( (in|of|under|inside) <FOLDER>)?( here)?<END>
  - list the files
  - show all files in src
list: (what|which) files are (there|here|((there|here) )?in <FOLDER>)<END>
  - what files are there
  - which files are in src?
list: (list|ls|dir)( (?!-)<FOLDER>)?<END>
  - list
  - list src
find: find (me )?(all )?(the )?files? (named |called |matching |like )?(?!in\s)<F:pattern><IN_FOLDER>
  - find files *.py
  - find all files named prices.py in src
find: find (me )?(all )?(the )?(?=\S*[*?.])<F:pattern>( files?)?<IN_FOLDER>
  - find *.py
  - find all *.py files in src
search: find (the (text|words?|phrase) )?<B:text> in (<ALL_FILES>|<FOLDER>)
  - find total in src
find: find (?!files?\Z|all\Z|me\Z)<F:pattern>
  - find Makefile
search: search in <FOLDER> for <B:text>
  - search in src for total
search: (search for|look for|search|grep) (?!-|for\Z|in\Z)(the (text|words?|phrase) )?<B:text><IN_FOLDER>
  - search total
  - search for "two words" in src
create: (create|write|make) <A_FILE><F:path><SAYING>
  - create a.txt with hello world
  - write a file called a.txt saying hello
  - create a.txt containing:⏎  one⏎  two
create: (create|write|make) <A_FILE><F:path>: <T:text>
  - create a.txt: hello
create: (write|save|put) <B:text> (to|into|in) <A_FILE><F:path>
  - write hello to a.txt
create: (create|make) (?=.*[./])<A_FILE><F:path>
  - create an empty file a.txt
append: (append|add) to <THE_FILE><F:path>( (with|saying|the text|the line))?<COLON><T:text>
  - append to a.txt: hello
append: (append|add) (?!(a|the) (new )?(text|line) to\b)((a|the) (new )?(text|line) (saying )?)?
    <B:text> (to|at) (the end of )?<THE_FILE><F:path>
  - append hello to a.txt
  - add the line "hello" to the end of a.txt
replace: (replace|change) <EVERY><B:old><BY><B:new> (everywhere )?in <THE_FILE><F:path>
  - replace foo by bar in a.txt
  - replace all occurrences of 'foo' with 'b a r' in a.txt
replace: in <THE_FILE><F:path>\s*,? (replace|change) <EVERY><B:old><BY><B:new>
  - in a.txt, replace foo with bar
run: (run|execute|exec)( the (shell )?command\s*:?\s*| (shell )?command\s*:\s*|\s*:\s*| )
    (?!(the|my|all|this|that|these|an?)\s)<C:text>
  - run ls -la | wc -l
  - run the command: make test
remember: remember( that\s*:? |\s*:\s*| )<T:text>
  - remember that I like tabs
read first: <READ>(the )?first (<N:last> )?lines? (of|from|in) <OF_FILE><END>
  - show the first 3 lines of prices.py
read: <READ>(the )?<RANGE> (of|from|in) <OF_FILE><END>
  - read lines 2-4 of prices.py
read: <READ><THE_FILE><F:path>:<N:first>(-<N:last>)?<END>
  - read prices.py:2-4
read from: <READ><OF_FILE>,? (starting )?(from|at) line <N:first>( on(wards)?)?<END>
  - read prices.py from line 4
read: <READ><OF_FILE>(,? (from )?<RANGE>)?<END>
  - read prices.py
  - show me the contents of prices.py
  - read prices.py lines 2-4
"""

CHINESE_VERBS = (
    r"(?:请|帮我|再|先)*\s*(?:列出|查找|寻找|找|搜索|搜|检索|创建|新建|建立|写入|写|追加|添加|把|将|在|向|往|给|用|替换"
    r"|运行|执行|记住|记下|读取|阅读|查看|显示|打开|读|看)"
)

CHINESE_PHRASES = r"""
END: [。！？]?
COLON: (\s*[:：]?[\t\x20]*\n|\s*[:：]?\s*)
IN: \s*(文件)?(中|里)?面?的?\s*
INSIDE: \s*(文件)?(中|里)面?的?\s*
EVERY: ((所有|全部|每个|每一个)的?\s*)?
BY: \s*(都|全部)?\s*(替换|改|换)(为|成)\s*
FOLDER: <F:path>\s*(目录|文件夹)?\s*(中|里|下)?面?
LINES: 第?\s*<N:first>\s*行?(\s*(-|–|—|~|～|到|至)\s*第?\s*<N:last>)?\s*行
READ: (读取|阅读|查看|显示|打开|读|看)(一下)?(文件)?\s*<F:path>
FIND: (查找|寻找|找|搜索|搜)(出)?(所有|全部)?(名为|叫)?(的)?
NEW_FILE: (一个)?(新)?的?
NAMED: (文件)?(叫做?|名为)?\s*<F:path>
AT_END: (\s*的?(末尾|最后|中|里))?
todo: (显示|查看|列出|看)?(一下)?(我的)?(待办(事项)?(列表|清单)?|任务列表|任务清单)<END>
  - 显示待办
  - 查看待办事项
list: (列出|显示|查看|看看|看)(一下)?(所有|全部)?(当前)?(目录|文件夹)?(下|中|里)?面?的?(所有|全部)?文件<END>
  - 列出文件
  - 列出当前目录下的所有文件
list: (看看|看|列出)?(一下)?(这里|当前|这个)?(目录|文件夹)?(下|中|里)?面?(都)?有(些)?(什么|哪些)文件<END>
  - 有哪些文件
  - 看看当前目录下有什么文件
list: 列出(当前|这个)(目录|文件夹)(的?内容)?<END>
  - 列出当前目录
list: 列出(\s*<F:path>)?\s*(目录|文件夹)?\s*(下|中|里)?面?的?(所有|全部)?(文件|内容)?<END>
  - 列出 src
  - 列出 src 目录下的文件
find: 在\s*<FOLDER>\s*<FIND>文件\s*<F:pattern><END>
  - 在 src 中查找文件 *.py
find: <FIND>(文件)?\s*(?=\S*[*?.])<F:pattern>\s*的?(文件)?<END>
  - 查找文件 *.py
  - 查找所有 *.py 文件
find: <FIND>文件\s*<F:pattern><END>
  - 查找文件 Makefile
search: 在\s*<FOLDER>\s*(搜索|搜|检索|查找|找)\s*<B:text><END>
  - 在 src 中搜索 合计
search: (搜索|搜|检索)\s*<B:text>(\s*(在|于)\s*<FOLDER>)?<END>
  - 搜索 合计
  - 搜索 合计 在 src
create: (创建|新建|建立|写入|写)<NEW_FILE><NAMED>\s*[，,]?\s*
    ((并)?写入|内容为|内容是|内容|写上|写着|包含)<COLON><T:text>
  - 创建 a.txt 内容为 你好
  - 新建文件 a.txt，内容为：⏎  一⏎  二
create: (把|将)\s*<B:text>\s*(写入|写到|保存到)\s*(文件)?\s*<F:path><END>
  - 把“你好”写入 a.txt
create: (创建|新建|建立)<NEW_FILE>(空)?(白)?的?<NAMED><END>
  - 创建空文件 a.txt
append: (向|在|往|给)\s*<F:path>\s*(文件)?的?(末尾|最后|中|里|后面)?\s*(追加|添加|加上)(一行)?<COLON><T:text>
  - 向 a.txt 追加 你好
  - 在 a.txt 末尾追加一行：你好
append: (把|将)\s*<B:text>\s*(追加到|添加到|加到)\s*(文件)?\s*<F:path><AT_END><END>
  - 把“你好”追加到 a.txt
append: (追加|添加)\s*<B:text>\s*到\s*(文件)?\s*<F:path><AT_END><END>
  - 追加 你好 到 a.txt
replace: 在\s*<F:path><IN>[，,]?\s*(把|将)\s*<EVERY><B:old><BY><B:new>
  - 在 a.txt 中把 foo 替换为 bar
replace: (把|将)\s*<F:path><INSIDE><EVERY><B:old><BY><B:new>
  - 把 a.txt 中的 foo 替换为 bar
  - 把 a.txt 里所有的“foo”改成“b a r”
replace: 替换\s*<F:path><INSIDE><EVERY><B:old>\s*(为|成)\s*<B:new>
  - 替换 a.txt 中的 foo 为 bar
replace: 用\s*<B:new>\s*替换\s*<F:path><INSIDE><EVERY><B:old><END>
  - 用 bar 替换 a.txt 中的 foo
run: (运行|执行)(一下)?(命令)?<COLON><C:text>
  - 运行 ls -la
  - 执行命令：make test
remember: (记住|记下)\s*[:：,，]?\s*<T:text>
  - 记住 我喜欢制表符
read from: <READ>\s*的?\s*(从\s*)?第?\s*<N:first>\s*行(开始|起|往后|之后)<END>
  - 读取 prices.py 从第4行开始
read first: <READ>\s*的?\s*(的)?前\s*<N:last>\s*行<END>
  - 读取 prices.py 的前3行
read: <READ>(\s*[，,]?\s*的?\s*(从\s*)?<LINES>)?(\s*的?内容)?<END>
  - 读取 prices.py
  - 查看 prices.py 的内容
  - 读取 prices.py 第2到4行
  - 读取 prices.py 的第二行
"""
