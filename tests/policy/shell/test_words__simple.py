from policy.shell.words import SimpleCommand


def test_a_command_reads_as_its_words_joined_by_blanks() -> None:
    assert SimpleCommand(("git", "log", "a b")).text == "git log a b"
