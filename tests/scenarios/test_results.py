import json
import re
from pathlib import Path

from tests.cases.bench import Bench
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI


def test_the_results_of_one_message_share_their_room_and_what_is_cut_can_be_read(tmp_path: Path) -> None:
    script = [TCS(*((f"c{n}", "read_file", '{"file_path": "big.txt"}') for n in range(8))), TXT("ok")]
    with FakeOpenAI(script, strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.write(big_txt="".join(f"line {number} {'x' * 50}\n" for number in range(1_000)))

        bench.run("go", "--thread", "t")
        results = bench.results(2)
        [blob] = {*re.findall(r'read_file\(file_path="(blob:[^"]+)"', "".join(results))}
        rest = json.dumps({"file_path": blob, "offset": 500, "limit": 1})
        server.replies += [TC("r", "read_file", rest), TXT("read")]
        bench.run("read on", "--thread", "t")

    assert all(20_000 < len(result) < 25_500 for result in results)
    assert "line 499 xxx" in bench.results(4)[-1]


def test_a_file_read_again_is_answered_shortly_until_it_changes(tmp_path: Path) -> None:
    read = '{"file_path": "a.txt"}'
    change = '{"file_path": "a.txt", "old_string": "line 7 ", "new_string": "line seven "}'
    script = [TC("c1", "read_file", read), TC("c2", "read_file", read), TC("c3", "edit_file", change)]
    script += [TC("c4", "read_file", read), TC("c5", "read_file", read), TXT("ok")]
    with FakeOpenAI(script, strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.write(a_txt="".join(f"line {number} {'x' * 50}\n" for number in range(300)))

        bench.run("go", "--thread", "t")

    short = "[a.txt is unchanged since you read these lines: see that earlier result, above.]"
    results = bench.results(len(server.bodies))
    assert [result == short for result in results] == [False, True, False, False, True]
    assert "line seven" in results[3]
