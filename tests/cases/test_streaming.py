import json
from typing import Any

import pytest

from tests.cases.bench import SetUp
from tests.fakes.openai_server import SSE, TC, TXT
from tests.graph_agent.model.reply_shapes import ARGUMENTS, FRAGMENTS, as_sent

_READ_A = '{"file_path":"a.txt"}'
_SHAPES = [
    shape
    for shape in (*FRAGMENTS, *ARGUMENTS)
    if shape.calls and all(arguments.get("path") in ("a", "b") for _, arguments in shape.calls)
]
"""All ways in which calls of read_file for one or two files arrive; `path` is an alias that the tool takes."""


def _piece(arguments: Any, **fields: Any) -> dict[str, Any]:
    """One streamed piece of one call; `name` goes into the function, all else beside it."""
    function = {"arguments": arguments} if arguments is not None else {}
    if "name" in fields:
        function["name"] = fields.pop("name")
    return {"t": [{**fields, "function": function}]}


def test_calls_in_odd_pieces_are_run_once_each_and_keep_the_history_valid(set_up: SetUp) -> None:
    bench = set_up(*map(as_sent, _SHAPES), TXT("ok"))
    bench.write(a="AAA\n", b="BBB\n")

    ran = bench.run("go", "--max-steps", "200")

    steps = [["a" if "AAA" in text else "b" if "BBB" in text else text for text in step] for step in bench.steps()]
    assert steps == [[arguments["path"] for _, arguments in shape.calls] for shape in _SHAPES]
    assert (ran.ending, bench.server.faults) == ((0, "ok"), [])


def test_arguments_are_the_same_bytes_in_every_later_request(set_up: SetUp) -> None:
    odd = '{ "file_path" :  "a.txt","limit":1.0, "offset":1 }'
    bench = set_up(TC("c1", "read_file", odd), TXT("one"), TC("c2", "read_file", _READ_A), TXT("two"))
    bench.write(a_txt="AAA\n")

    bench.run("go", "--thread", "t1")
    bench.run("again", "--resume", "t1")
    bench.run("and again", "--resume", "t1")

    firsts = {bench.sent_arguments(number)[0] for number in (2, 3, 4, 5)}
    assert (len(firsts), len(bench.server.bodies), bench.server.faults) == (1, 5, [])
    assert json.loads(firsts.pop()) == {"file_path": "a.txt", "limit": 1.0, "offset": 1}


def test_texts_for_numbers_are_taken_and_nonsense_is_named(set_up: SetUp) -> None:
    bench = set_up(
        TC("c1", "read_file", {"file_path": "f.txt", "offset": "2", "limit": "1"}),
        TC("c2", "bash", {"command": "echo hi", "timeout": "5"}),
        TC("c3", "read_file", {"file_path": "f.txt", "offset": "two"}),
        TC("c4", "read_file", {"file_path": "f.txt", "offset": None, "limit": None}),
        TC("c5", "read_file", {}),
        TC("c6", "read_file", {"file_path": "f.txt", "offset": True}),
        TXT("ok"),
    )
    bench.write(f_txt="1st\n2nd\n3rd\n")

    ran = bench.run()

    second_line, shell, refused, whole, missing, flag = bench.results(7)
    assert ran.ending == (0, "ok")
    assert [word in second_line for word in ("1st", "2nd", "3rd")] == [False, True, False]
    assert ("hi" in shell, "exit code 0" in shell) == (True, True)
    assert [word in refused for word in ("offset", "integer", "two")] == [True, True, True]
    assert [word in whole for word in ("1st", "2nd", "3rd")] == [True, True, True]
    assert ("file_path" in missing, "offset" in flag) == (True, True)


def test_an_unknown_tool_is_answered_with_those_there_are_and_odd_spelling_opens_no_door(set_up: SetUp) -> None:
    names = [" bash\n", "Bash", "functions.bash", "BASH "]
    calls = [TC(f"c{number}", name, {"command": f"touch t{number}"}) for number, name in enumerate(names)]
    bench = set_up(TC("c9", "search_files", {"query": "x"}), *calls, TXT("ok"))
    bench.configure('[policy]\ndeny = ["bash"]\n')

    ran = bench.run()

    unknown, *denied = bench.results(6)
    assert (ran.ending, list(bench.workspace.iterdir()), bench.server.faults) == ((0, "ok"), [], [])
    assert ("Did you mean grep or glob?" in unknown, len(denied)) == (True, 4)


@pytest.mark.parametrize("streamed", [True, False])
def test_thinking_in_the_text_is_neither_answer_nor_argument(set_up: SetUp, streamed: bool) -> None:
    thinking: list[dict[str, Any]] = [{"content": piece} for piece in ("<think>", "plan", "</think>")]
    call = [_piece("", index=0, id="c1", name="ls"), _piece('{"pa', index=0), _piece('th":"."}', index=0)]
    reply = (
        SSE([*thinking, *call], "tool_calls")
        if streamed
        else TC("c1", "ls", {"path": "."}, text="<think>plan</think>")
    )
    bench = set_up(reply, TXT("<think>more</think>ok"))
    bench.write(seen_txt="x")

    ran = bench.run("go", *([] if streamed else ["--no-stream"]))

    [result], [sent] = bench.results(2), bench.sent_arguments(2)
    assert (ran.ending, "seen.txt" in result, json.loads(sent)) == ((0, "ok"), True, {"path": "."})


def test_arguments_that_are_no_object_are_never_run_and_the_history_stays_valid(set_up: SetUp) -> None:
    odd = ["[1]", '"x"', "{bad", '{"file_path": "a.txt"']
    cut = TC("c4", "write_file", {"file_path": "x.txt", "content": "looks whole"}, finish="length")
    bench = set_up(*(TC(f"c{n}", "read_file", text) for n, text in enumerate(odd)), cut, TXT("ok"))
    bench.write(a_txt="AAA\n")

    ran = bench.run()

    *refused, last = bench.results(6)
    assert (ran.ending, bench.read("x.txt"), "cut off" in last) == ((0, "ok"), None, True)
    reasons = ["JSON", "JSON", "JSON", "end in the middle"]
    assert [("AAA" in text, reason in text) for text, reason in zip(refused, reasons, strict=True)] == [
        (False, True)
    ] * 4
    assert (bench.sent_arguments(6), bench.server.faults) == (["{}"] * 5, [])
