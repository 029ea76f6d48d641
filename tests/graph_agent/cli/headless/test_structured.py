from pathlib import Path

import pytest

from graph_agent.cli.headless.report import AnswerSchema, read_schema
from graph_agent.errors import UsageError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON: "),
        ("[1]", "it should be an object"),
        ('{"type": "nothing"}', "holds no JSON Schema: 'nothing' is not valid"),
        (" " * 300_000, "is larger than 256 KB"),
    ],
)
def test_a_file_without_a_schema_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "schema.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(UsageError, match=f"--json-schema '{file}' .*{said}"):
        read_schema(str(file))


@pytest.mark.parametrize(
    ("schema", "answer", "value", "problem"),
    [
        ({}, " [1] ", [1], ""),
        ({"type": "string"}, '"x"', "x", ""),
        ({"type": "string"}, "x", None, "It is not JSON: Expecting value"),
        (
            {"type": "array", "items": {"type": "integer"}},
            "[1, 2.5]",
            None,
            "At $[1]: 2.5 is not of type 'integer'.",
        ),
        ({"$ref": "http://127.0.0.1:9/x"}, "1", None, "The schema cannot be applied: "),
    ],
)
def test_an_answer_is_checked(schema: dict[str, object], answer: str, value: object, problem: str) -> None:
    checked = AnswerSchema(schema).check(answer)

    assert checked.value == value
    assert checked.problem.startswith(problem) if problem else checked.problem == ""
