import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs._generate.manual import COLUMNS
from docs._generate.pages import PAGES, write_pages
from graph_agent.cli.main import app
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.schema import tables_of_version
from tests.architecture.checkout import ROOT, expect_none
from tests.fakes.parsed_commands import understood

LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
SPOKEN_COMMAND = re.compile(r"`graph-agent ((?:[a-z]+ ?)+)")
BLOCK = re.compile(r"^```(sh|console|text|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LISTED_COMMAND = re.compile(r"^## graph-agent (.+)$", re.MULTILINE)


def written_pages() -> list[str]:
    deep = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return sorted({"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md", *deep})


def dead_links(root: Path, page: str) -> list[str]:
    targets = LINK.findall((root / page).read_text(encoding="utf-8"))
    return [f"{page}: {target}" for target in targets if not (root / page).parent.joinpath(target).exists()]


def unknown_commands(text: str, commands: set[str]) -> list[str]:
    spoken = {words.strip() for words in SPOKEN_COMMAND.findall(text)}
    return sorted(words for words in spoken if not any(words == c or words.startswith(f"{c} ") for c in commands))


def test_no_link_in_the_docs_is_dead() -> None:
    expect_none(line for page in written_pages() for line in dead_links(ROOT, page))


def test_the_docs_name_only_commands_that_exist() -> None:
    commands = set(LISTED_COMMAND.findall(PAGES["docs/commands.md"]()))
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in written_pages() if page not in PAGES}

    expect_none(f"{page}: {words}" for page, text in texts.items() for words in unknown_commands(text, commands))


def test_the_page_on_architecture_names_every_layer_and_every_table() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    packages = [name.rpartition(".")[2] for layer in layers for name in layer.split(" | ")]
    tables = tables_of_version(SCHEMA_VERSION)

    assert len(tables) > 15
    expect_none(name for name in packages if not re.search(rf"^(.*[. |])?{name}\b.*$", text, re.MULTILINE))
    expect_none(sorted(table for table in tables if f"`{table}`" not in text))


def blocks(text: str, *kinds: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind in kinds]


def typed_lines(text: str) -> Iterator[list[str]]:
    """The words after `graph-agent` in each line of a page that types it."""
    typed = [line for block in blocks(text, "sh") for line in block.splitlines()]
    shown = [line for block in blocks(text, "console", "text") for line in block.splitlines()]
    for line in [*typed, *(line[2:] for line in shown if line.startswith("$ "))]:
        if match := re.match(r"graph-agent (.*)", line):
            words = shlex.shlex(match[1], posix=True, punctuation_chars=True)
            words.whitespace_split = True
            # Up to a pipe, a file or another command.
            yield list(takewhile(lambda word: not set(word) <= set("();<>|&"), words))


def not_understood(text: str) -> Iterator[str]:
    for words in typed_lines(text):
        try:
            understood(list(words))
        except Exception as wrong:  # noqa: BLE001 - whatever is wrong with it
            yield f"graph-agent {shlex.join(words)}: {wrong}"


def test_every_command_line_in_the_docs_is_valid() -> None:
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in written_pages()}

    assert sum(len(list(typed_lines(text))) for text in texts.values()) > 30
    expect_none(f"{page}: {line}" for page, text in texts.items() for line in not_understood(text))


def test_every_settings_block_in_the_docs_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    texts = [(page, text) for page in written_pages() for text in blocks((ROOT / page).read_text("utf-8"), "toml")]

    refused = []
    for page, text in texts:
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        if failure := CliRunner().invoke(app, ["config", "show"]).exception:
            refused.append(f"{page}: {failure}")

    assert len(texts) > 8
    expect_none(refused)


def test_a_line_with_an_option_that_does_not_exist_is_noticed() -> None:
    text = "```console\n$ graph-agent calls --flying | head\n$ graph-agent calls shop > calls.txt\n```\n"

    [line] = not_understood(text)

    assert line.startswith("graph-agent calls --flying: ")


def test_a_dead_link_is_noticed_from_the_page_it_stands_on(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[b](b.md) [top](../LICENSE#top) [web](https://example.test/x) [here](#a)")
    (tmp_path / "LICENSE").touch()

    assert dead_links(tmp_path, "docs/a.md") == ["docs/a.md: b.md"]


def test_a_command_that_does_not_exist_is_noticed() -> None:
    text = "`graph-agent threads list`, `graph-agent run PROMPT`, `graph-agent fly away`, `graph-agent`"

    assert unknown_commands(text, {"threads", "threads list", "run"}) == ["fly away"]


def test_the_manual_page_fits_a_terminal_of_60_columns() -> None:
    page = (ROOT / "docs/graph-agent.1").read_text()
    lines = [
        line
        for block in re.findall(r"^\.nf\n(.*?)^\.fi", page, re.DOTALL | re.MULTILINE)
        for line in block.split("\n")
    ]
    shown = [re.sub(r"\\(?:\(..|&|-|e)", lambda sign: "" if sign[0] == "\\&" else "-", line) for line in lines]

    assert len(shown) > 500
    expect_none([line for line in shown if len(line) > COLUMNS - len("  ")])


def test_generated_pages_hold_what_the_code_says() -> None:
    stale = [path for path, render in PAGES.items() if (ROOT / path).read_text(encoding="utf-8") != render()]

    assert stale == [], "run `make docs`"


def test_writing_the_pages_restores_stale_ones_once(tmp_path: Path) -> None:
    for path in PAGES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("stale")

    first, second = write_pages(tmp_path), write_pages(tmp_path)

    assert (first, second) == (list(PAGES), [])
    assert {path: (tmp_path / path).read_text(encoding="utf-8") for path in PAGES} == {
        path: render() for path, render in PAGES.items()
    }


FIRST_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def explained_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))


def first_commands(readme: str) -> list[str]:
    block = FIRST_BLOCK.search(readme)
    return [line.partition("#")[0].strip() for line in block[1].splitlines()] if block else []


def test_help_explains_every_make_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert explained_targets(makefile) == targets(makefile)


def test_the_readme_begins_with_run_and_test() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert first_commands(readme) == ["make run", "make test"]


def test_ci_runs_the_checks_and_the_tests_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")

    assert re.findall(r"^make \w+", script, re.MULTILINE) == ["make check", "make test"]


def test_a_make_command_without_explanation_is_noticed() -> None:
    makefile = "run: stamp ## open the chat\n\t@echo run\ntest: stamp\n\t@echo test\n"

    assert (targets(makefile), explained_targets(makefile)) == ({"run", "test"}, {"run"})


FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
ROW = re.compile(r"^\| (`.*?) \| ", re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")


def untranslated(text: str) -> dict[str, object]:
    """What a translation of a page has in common with the page."""
    prose = FENCE.sub("", text)
    return {
        "headings": HEADING.findall(prose),
        "blocks": FENCE.findall(text),
        "rows": [SPAN.findall(row) for row in ROW.findall(prose)],
        "spans": {" ".join(span.split()) for span in SPAN.findall(prose)},
    }


def test_both_readmes_have_the_same_headings_commands_and_code() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))

    assert untranslated(chinese) == untranslated(english)


def test_a_command_or_block_that_only_one_page_has_is_noticed() -> None:
    text = "# A\n\n```sh\nmake run\n```\n\n| `fly` | flies |\n"

    assert untranslated(text) == untranslated(text.replace("flies", "飞").replace("# A", "# 甲"))
    assert untranslated(text) != untranslated(text.replace("fly`", "walk`"))
    assert untranslated(text) != untranslated(text.replace("make run", "make test"))
    assert untranslated(text) != untranslated(text.replace("# A", "## A"))


def test_every_test_that_a_page_names_exists() -> None:
    named = [
        (page, path)
        for page in written_pages()
        if page != "CONTRIBUTING.md"  # It shows how to add one.
        for path in re.findall(r"`(tests/[\w/.-]+)`", (ROOT / page).read_text(encoding="utf-8"))
    ]

    assert len(named) >= 40
    expect_none(f"{page}: {path}" for page, path in named if not (ROOT / path).exists())
