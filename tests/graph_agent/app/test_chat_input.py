import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graph_agent.app import chat_input
from graph_agent.app.chat_input import FileNames, clipboard_image, dropped_images, user_commands
from graph_agent.app.model_trial import red_square
from graph_agent.app.project_trust import project_at, record_trust, trust_effects
from graph_agent.errors import UsageError


def _put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    made = tmp_path / "project"
    _put(made, ".graph-agent/commands/deep/ship.md", "Ship it.")
    _put(made, ".graph-agent/commands/review.md", "theirs")
    _put(made, ".graph-agent/commands/notes.txt", "no command")
    _put(tmp_path / "home" / "commands", "review.md", "mine: $1")
    return made.resolve()


def test_commands_of_a_project_count_once_it_is_trusted_and_never_before_those_of_the_user(folder: Path) -> None:
    untrusted = user_commands(folder)
    with pytest.raises(UsageError, match=r"/deep:ship is defined in .*ship.md, in a folder that you have not"):
        untrusted.message("deep:ship", "")
    shown = trust_effects(project_at(folder))

    record_trust(project_at(folder), trusted=True)
    trusted = user_commands(folder)

    assert (sorted(untrusted.known), sorted(untrusted.untrusted)) == (["review"], ["deep:ship"])
    assert [line.partition(", sha256")[0] for line in shown] == [
        ".graph-agent/commands/deep/ship.md: 1 line of a slash command",
        ".graph-agent/commands/review.md: 1 line of a slash command",
    ]
    assert (trusted.message("deep:ship", ""), trusted.message("review", "x")) == ("Ship it.", "mine: x")
    assert (trusted.untrusted, trusted.message("none", "")) == ({}, None)


def test_a_changed_command_has_to_be_trusted_anew_and_one_run_may_let_it_count(folder: Path) -> None:
    record_trust(project_at(folder), trusted=True)
    _put(folder, ".graph-agent/commands/deep/ship.md", "Ship it, and the keys.")

    assert "deep:ship" in user_commands(folder).untrusted
    assert user_commands(folder, once=True).message("deep:ship", "") == "Ship it, and the keys."


def test_what_leads_out_of_the_project_is_no_command(folder: Path, tmp_path: Path) -> None:
    _put(tmp_path / "outside", "evil.md", "evil")
    (folder / ".graph-agent/commands/out").symlink_to(tmp_path / "outside")
    (folder / ".graph-agent/commands/evil.md").symlink_to(tmp_path / "outside" / "evil.md")

    found = user_commands(folder, once=True)

    assert sorted(found.known) == ["deep:ship", "review"]


def test_a_pipe_or_a_flood_among_the_files_keeps_nobody_waiting(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "home" / "commands" / "pipe.md")
    (tmp_path / "home" / "commands" / "huge.md").write_text("x" * 300_000)

    assert sorted(user_commands(folder).known) == ["review"]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chat_input, "_WALK_S", 10.0)  # However busy the machine is.
    names = (
        "src/app.py",
        "src/deep/apple.txt",
        "docs/app.md",
        ".env",
        "out/made.py",
        "a b.txt",
        "zeta.py",
        "link",
    )
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / ".gitignore").write_text("out/\n")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "available"),
    [
        ("", ["a b.txt", "docs/", "link", "src/", "zeta.py"]),
        ("src/", ["src/app.py", "src/deep/", "src/deep/apple.txt"]),
        ("src/a", ["src/app.py", "src/deep/apple.txt"]),
        ("app", ["src/app.py", "docs/app.md", "src/deep/apple.txt"]),
        ("./zeta", ["zeta.py"]),
        ("sdtx", ["src/deep/apple.txt"]),
        (".e", [".env"]),
        ("out", ["out/"]),
        ("out/m", ["out/made.py"]),
        ("APPLE", ["src/deep/apple.txt"]),
        ("none of it", []),
    ],
)
def test_names_are_offered_by_folder_and_by_letters_of_their_paths(
    workspace: Path, typed: str, available: list[str]
) -> None:
    assert sorted(FileNames(workspace).like(typed)) == sorted(available)


def test_the_likeliest_comes_first(workspace: Path) -> None:
    assert FileNames(workspace).like("deep") == ["src/deep/", "src/deep/apple.txt"]
    assert FileNames(workspace).like("app")[0] == "src/app.py"
    assert FileNames(workspace).like("sapp") == ["src/app.py", "docs/app.md", "src/deep/apple.txt"]


def test_folders_outside_are_offered_by_name_only(workspace: Path) -> None:
    inner = workspace / "src"

    assert FileNames(inner).like("../d") == ["../docs/"]
    assert FileNames(inner).like(f"{workspace}/z") == [f"{workspace}/zeta.py"]
    assert FileNames(inner).like("/no/such/folder/x") == []


def test_a_large_tree_is_looked_through_as_far_as_there_is_time(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_input, "_WALK_S", -1.0)

    assert FileNames(workspace).like("apple") == []
    assert FileNames(workspace).like("src/deep/apple") == ["src/deep/apple.txt"]


@pytest.fixture
def shots(folder: Path, tmp_path: Path) -> Path:
    place = tmp_path / "my shots"
    place.mkdir()
    for name in ("a.png", "b c.PNG"):
        (place / name).write_bytes(red_square())
    (place / "fake.png").write_text("no image")
    (place / "cut.png").write_bytes(red_square()[:-4])
    (place / "large.png").write_bytes(red_square() + bytes(5 * 1024 * 1024))
    return place


@pytest.mark.parametrize(
    ("pasted", "labels"),
    [
        (lambda place: f"{place}/a.png", ["a.png, 32x32"]),
        (lambda place: f"'{place}/a.png' ", ["a.png, 32x32"]),
        (lambda place: f"{place}/b c.PNG\n".replace(" ", "\\ "), ["b c.PNG, 32x32"]),
        (lambda place: f"file://{str(place).replace(' ', '%20')}/b%20c.PNG", ["b c.PNG, 32x32"]),
        (lambda place: f"'{place}/a.png' \"{place}/b c.PNG\"", ["a.png, 32x32", "b c.PNG, 32x32"]),
        (lambda place: f"see '{place}/a.png'", []),
        (lambda place: f"{place}/missing.png", []),
        (lambda place: place.name + "/a.png", []),
        (lambda place: f"{place}/..", []),
        (lambda place: f"{place}/fake.png", []),
        (lambda place: f"'{place}/a.png", []),
    ],
)
def test_a_paste_that_is_nothing_but_images_names_them(
    shots: Path, pasted: Callable[[Path], str], labels: list[str]
) -> None:
    found = dropped_images(pasted(shots))

    assert [image.label for image in found] == labels
    assert all(image.path.read_bytes() == red_square() for image in found)


@pytest.mark.parametrize(
    ("name", "reason"), [("cut.png", "damaged or truncated"), ("large.png", "larger than 5 MB")]
)
def test_an_image_that_cannot_be_sent_is_refused(shots: Path, name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        dropped_images(f"'{shots}/{name}'")


@pytest.mark.parametrize(
    ("program", "script", "outcome"),
    [
        ("wl-paste", "cat image", "clipboard.png, 32x32"),
        ("xclip", "cat image", "clipboard.png, 32x32"),
        ("pngpaste", "cat image", "clipboard.png, 32x32"),
        ("powershell.exe", "base64 image", "clipboard.png, 32x32"),
        ("wl-paste", "echo text", "not a PNG, JPEG, GIF or WebP"),
        ("wl-paste", "exit 1", "contains no image"),
        ("wl-paste", "cat /dev/zero", "not a PNG, JPEG, GIF or WebP"),
        ("other", "exit 1", "No program can read images"),
    ],
)
def test_the_clipboard_is_read_by_whichever_program_is_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, script: str, outcome: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "image").write_bytes(red_square())
    (programs / program).write_text(f"#!/bin/sh\ncd {programs} && PATH=/bin:/usr/bin exec {script}\n")
    (programs / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))

    if outcome.endswith("32x32"):
        assert clipboard_image().label == outcome
    else:
        with pytest.raises(UsageError, match=outcome):
            clipboard_image()


def test_copies_of_pasted_images_are_removed_after_a_week(shots: Path, tmp_path: Path) -> None:
    [old] = dropped_images(f"{shots}/a.png".replace(" ", "\\ "))
    os.utime(old.path, (0, 0))

    [new] = dropped_images(f"'{shots}/b c.PNG'")

    assert (old.path.exists(), new.path.exists(), new.path.stat().st_mode & 0o077) == (False, True, 0)
