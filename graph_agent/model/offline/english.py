"""The English phrases of the offline commands, in the notation of `offline.parser`. The first that fits wins."""

__all__ = ["ENGLISH_PHRASES", "ENGLISH_VERBS"]

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
