from tools.file_ops.read_file import numbered


def test_lines_are_numbered_from_the_first_one_on() -> None:
    assert numbered(["a", "", "b"], 9, 10) == "     9\ta\n    10\t\n    11\tb"


def test_a_line_over_the_limit_is_cut_with_its_length() -> None:
    assert numbered(["abcdef"], 1, 3) == "     1\tabc [… line cut, it has 6 characters]"
