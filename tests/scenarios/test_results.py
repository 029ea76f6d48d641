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
