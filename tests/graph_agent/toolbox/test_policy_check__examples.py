import pytest

from graph_agent.toolbox.policy_check import Examples, check_examples
from policy import InvalidRule


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        (
            "allow",
            Examples("bash(git commit*)", ("git commit", "'git' commit -m 'a; b'"), ("git push", "git commit; id")),
        ),
        ("deny", Examples("bash(rm -rf *)", ("rm -rf x", "true && rm -rf x", "sh -c 'rm -rf x'"), ("rm x",))),
        ("allow", Examples("write(src/**)", ("src/a.py", "./src/b/c.py"), ("src/../x", "/src/a.py"))),
        ("deny", Examples("read(~/.ssh/**)", ("~/.ssh/id_rsa",), ("x",))),
        (
            "ask",
            Examples(
                "web_fetch(docs.python.org)", ("docs.python.org", "https://docs.python.org/3/"), ("python.org",)
            ),
        ),
        ("deny", Examples("mcp__hub__*", ("mcp__hub__get",), ("mcp__hubs__get",))),
        ("deny", Examples("Read", ("read_file", "READ"), ("write_file",))),
        ("allow", Examples("frobnicate(x)")),
    ],
)
def test_a_rule_that_means_what_its_examples_say_is_taken(kind: str, examples: Examples) -> None:
    check_examples(kind, examples)  # type: ignore[arg-type]  # one of the three lists


@pytest.mark.parametrize(
    ("kind", "examples", "complaint"),
    [
        (
            "allow",
            Examples("bash(git *)", ("git log; id",)),
            "does not cover 'git log; id', which its examples say it must",
        ),
        (
            "deny",
            Examples("bash(git *)", (), ("x && git log",)),
            "covers 'x && git log', which its examples say it must not",
        ),
        (
            "allow",
            Examples("write(src/*)", ("src/a/b",)),
            r"the allow rule 'write\(src/\*\)' does not cover 'src/a/b'",
        ),
        ("allow", Examples("web_fetch(a.org)", ("a b",)), "the example 'a b' of .* cannot be used"),
        ("allow", Examples("read(x)", ("x\0",)), "cannot be used: .*NUL"),
        ("allow", Examples("frobnicate(x)", ("x",)), "cannot carry examples: only rules about bash"),
        ("allow", Examples("(", ("x",)), "is not a rule"),
    ],
)
def test_a_rule_that_means_something_else_is_refused_with_rule_and_example(
    kind: str, examples: Examples, complaint: str
) -> None:
    with pytest.raises(InvalidRule, match=complaint):
        check_examples(kind, examples)  # type: ignore[arg-type]  # one of the three lists
