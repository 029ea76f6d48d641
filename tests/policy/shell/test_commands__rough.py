import time

from policy.shell.commands import rough_commands, rough_endings


def test_whatever_could_be_a_command_is_guessed_with_and_without_its_quotes() -> None:
    found = {command.text for command in rough_commands("a 'b c' && $(rm \"x\nls")}

    assert {"a b c", "b c", "rm x", "ls"} <= found


def test_words_that_only_introduce_a_command_are_no_part_of_it() -> None:
    found = {command.text for command in rough_commands("if ! X=1 a[0]=2 rm x")}

    assert "rm x" in found
    assert "x" not in found


def test_an_ending_may_be_a_command_of_its_own() -> None:
    assert [command.text for command in rough_endings("1e !rm x")] == ["1e !rm x", "rm x", "x"]


def test_of_very_many_words_before_a_command_the_command_is_found_in_no_time() -> None:
    began = time.monotonic()
    found = [command.text for command in rough_commands("A=1 " * 50_000 + "rm x")]

    assert ("rm x" in found, len(found) < 200, time.monotonic() - began < 2) == (True, True, True)
