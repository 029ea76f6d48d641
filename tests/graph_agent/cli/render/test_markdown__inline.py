import pytest

from graph_agent.cli.render.markdown import inline


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("**bold** *it* `code` ~~gone~~", "bold it code gone"),
        ("__init__ and _x_ and snake_case", "__init__ and _x_ and snake_case"),
        ("Vec<T> and <b>x</b> &amp; &#27;[2J", "Vec<T> and <b>x</b> &amp; &#27;[2J"),
        (r"C:\_foo\bar \[x\] \*no mark\*", r"C:\_foo\bar \[x\] *no mark*"),
        (
            "[docs](https://x.y/a_(b)) <https://a.b> ![pic](p.png)",
            "docs (https://x.y/a_(b)) https://a.b pic (p.png)",
        ),
        ("[note][1] [1]: https://x.y", "[note][1] [1]: https://x.y"),
        ("[red]x[/] [/'A', 1]", "[red]x[/] [/'A', 1]"),
        ("2 * 3 * 4 ** 5", "2 * 3 * 4 ** 5"),
        ("a **never closed", "a **never closed"),
    ],
)
def test_only_marks_disappear(line: str, shown: str) -> None:
    assert inline(line).plain == shown


def test_marks_become_styles() -> None:
    shown = inline("**a `b`** *c*")

    assert [(shown.plain[span.start : span.end], span.style) for span in shown.spans] == [
        ("a ", "bold"),
        ("b", "bold cyan"),
        ("c", "italic"),
    ]
