"""Names as tools show them: on one line, visible, and the way back to exactly that file."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools import create_default_tools
from tools.paths import given_path, quoted_path, shown_path

_ODD = "\u200b\u202e\u00a0\u3164\ufe0f\ufeff\u2028\x1b\n\t\r\\'\"$~ .:*[]{}"
_characters = st.one_of(st.sampled_from(_ODD), st.sampled_from("abnrtxuU0192ef"), st.characters(codec="utf-8"))
_text = st.text(_characters, min_size=1, max_size=12)
_quoted = _text.map(lambda text: f"$'{text}'")
_escaped = st.sampled_from(
    ["\\u200b", "\\xff", "\\n", "$'\\u200b'", "$'a'", "$'\\xe2\\x80\\x8b'", "$'\\x2f'", "$'"]
)
_bytes = st.binary(min_size=1, max_size=8).map(os.fsdecode)


def _is_name(text: str) -> bool:
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        return False
    return 0 < size <= 255 and not {"/", "\0"}.intersection(text) and text not in (".", "..")


names = st.one_of(_text, _quoted, _escaped, _bytes, st.tuples(_text, _bytes).map("".join)).filter(_is_name)


@settings(max_examples=3_000, deadline=None)
@given(st.lists(names, min_size=1, max_size=3))
@example(["~"])
@example(["blob:sha256:0"])
@example(["$'\\x41'"])
@example([" "])
def test_every_path_has_a_visible_form_that_leads_back_to_it(parts: list[str]) -> None:
    path = "/".join(parts)

    shown = shown_path(path)

    assert given_path(shown).removeprefix("./") == path
    assert shown.isprintable()


@settings(max_examples=2_000, deadline=None)
@given(names, names)
def test_two_names_never_have_the_same_form(one: str, other: str) -> None:
    assert (shown_path(one) == shown_path(other)) is (one == other)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, min_size=1, max_size=4, unique_by=os.fsencode))
async def test_what_ls_glob_and_grep_show_is_read_and_written_back(tmp_path: Path, given_names: list[str]) -> None:
    folder = tmp_path / "w"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    shown = {name: shown_path(name) for name in given_names}
    for number, name in enumerate(given_names):
        (folder / name).write_text(f"text {number}\n")
    tool = {one.name: one for one in create_default_tools(workspace=folder)}

    for number, name in enumerate(given_names):
        form = shown[name]
        read = await tool["read_file"].execute(file_path=form)
        assert read.output == f"     1\ttext {number}"
        found = await tool["grep"].execute(pattern=f"text {number}", path=form, output_mode="files_with_matches")
        assert found.output.startswith(form)
        edited = await tool["edit_file"].execute(file_path=form, old_string="text", new_string="TEXT")
        assert (edited.error, (folder / name).read_text()) == (None, f"TEXT {number}\n")

    visible = [name for name in given_names if not name.startswith(".")]
    listed = (await tool["ls"].execute()).output.splitlines()
    assert [line for line in listed if line in {f"{shown[name]}  7 bytes" for name in visible}] == [
        f"{shown[name]}  7 bytes" for name in sorted(visible)
    ]
    globbed = (await tool["glob"].execute(pattern="*")).output.splitlines()
    assert {shown[name] for name in visible} <= set(globbed)


_CASES = {
    "a.txt": "a.txt",
    "über — 中文.txt": "über — 中文.txt",
    "it's": "it's",
    "a\\b": "a\\b",
    "a\\u200b": "a\\u200b",
    "a\u200b.txt": "$'a\\u200b.txt'",
    "it's\u200b": "$'it\\'s\\u200b'",
    "\udcff": "$'\\xff'",
    "caf\udce9.txt": "$'caf\\xe9.txt'",
    "a\nb": "$'a\\nb'",
    "\x1b[31m": "$'\\x1b[31m'",
    "\x85": "$'\\u0085'",
    "\U000e0041": "$'\\U000e0041'",
    "$'a'": "$'$\\'a\\''",
    "~": "$'~'",
    " a": "$' a'",
    "d/a\u200b/e": "d/$'a\\u200b'/e",
}


@pytest.mark.parametrize(("path", "shown"), _CASES.items())
def test_the_form_is_the_one_of_bash(path: str, shown: str, tmp_path: Path) -> None:
    assert shown_path(path) == shown
    if "$'" in shown:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        command = ["bash", "-c", f"printf %s {shown}"]
        printed = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
        assert printed == os.fsencode(path)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("$'\\xe2\\x80\\x8b'", "\u200b"),
        ("$'a\\x2fb'", "$'a\\x2fb'"),
        ("$'\\x00'", "$'\\x00'"),
        ("$'\\ud800'", "$'\\ud800'"),
        ("$'\\q'", "$'\\q'"),
        ("$''", "$''"),
        ("x$'a'", "x$'a'"),
        ("$'a", "$'a"),
        ("$'a'/$'b\\n'", "a/b\n"),
    ],
)
def test_only_what_a_name_can_be_is_read_as_quoted(given: str, path: str) -> None:
    assert given_path(given) == path


def test_a_message_shows_a_path_as_it_was_given() -> None:
    given = ("~/a", "it's", "a\u200b", "$'a\\u200b'", "a b")

    assert [*map(quoted_path, given)] == ["'~/a'", '"it\'s"', "$'a\\u200b'", "$'a\\u200b'", "'a b'"]


async def test_a_literal_name_that_looks_quoted_and_the_file_it_would_mean_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a\u200b").write_text("hidden")
    (tmp_path / "$'a\\u200b'").write_text("literal")
    read = next(one for one in create_default_tools(workspace=tmp_path) if one.name == "read_file")

    forms = [shown_path(path.name) for path in sorted(tmp_path.iterdir())]
    texts = [(await read.execute(file_path=form)).output.strip() for form in forms]

    assert forms == ["$'$\\'a\\\\u200b\\''", "$'a\\u200b'"]
    assert texts == ["1\tliteral", "1\thidden"]
