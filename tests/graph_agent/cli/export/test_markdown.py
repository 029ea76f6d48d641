from graph_agent.cli.export.markdown import markdown_page
from graph_agent.cli.export.transcript import read_transcript
from tests.fakes.database_rows import Rows, record_of


def page(rows: Rows) -> str:
    return "\n".join(markdown_page(read_transcript(rows.path, "t1", None)))


def test_a_page_tells_who_said_what_and_what_each_call_did(rows: Rows) -> None:
    rows.thread(title="Mend *it*", turns=1)
    rows.message("user", {"content": "mend a.py"})
    usage = {"input_tokens": 7, "output_tokens": 3}
    asked = {"id": "call_a", "name": "bash", "args": {"command": "make"}}
    rows.message("assistant", {"content": "on it", "tool_calls": [asked], "usage": usage})
    rows.call(record_of("success", result="ok", metadata={"diff": {"unified": "-a\n+b\n"}}))

    shown = page(rows)

    assert shown.startswith("# Mend \\*it\\*\n\n- thread: t1\n")
    assert shown.endswith(
        """
## Turn 1, 2026-11-28 10:00:00 UTC

**You**

> mend a.py

**Assistant** (7 tokens in, 3 out)

> on it

### bash: make

**success**, medium risk, `call_a`

```json
{
  "command": "make"
}
```

```diff
-a
+b
```

```text
ok
```"""
    )


def test_nothing_that_was_said_gets_out_of_its_quote_or_fence(rows: Rows) -> None:
    rows.thread(title="# <b>", turns=1)
    rows.message("user", {"content": "# no heading\n<script>x</script> ![p](http://h/p.png)\n```\n<i> kept\n"})
    asked = {"id": "call_a", "name": "bash", "args": {"command": "````\n# out"}}
    rows.message("assistant", {"content": "a\x1b[31m\u202eb", "tool_calls": [asked]})
    rows.call(record_of("error", error_msg="```\n# out\n~~~"))

    lines = page(rows).split("\n")

    assert [line for line in lines if line.startswith("#")] == [
        "# \\# \\<b\\>",
        "## Turn 1, 2026-11-28 10:00:00 UTC",
        "### bash: make",
        "# out",
    ]
    quoted = [line for line in lines if line.startswith(">")]
    assert quoted[:5] == [
        "> # no heading",
        "> \\<script>x\\</script> \\![p](http://h/p.png)",
        "> ```",
        "> <i> kept",
        ">",
    ]
    assert quoted[5:] == ["> a\\x1b[31m\\u202eb"]
    around = lines.index("# out")
    assert (lines[around - 2], lines[around + 2]) == ("````text", "````")
