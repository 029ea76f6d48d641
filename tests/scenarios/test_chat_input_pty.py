from pathlib import Path

from tests.cases.bench import Bench
from tests.fakes.openai_server import TXT, FakeOpenAI


def test_a_message_brings_a_completed_file_and_a_shared_shell_line_and_was_in_an_editor(
    tmp_path: Path,
) -> None:
    with FakeOpenAI([TXT("first"), TXT("second")], strict=True) as server:
        bench = Bench(tmp_path, server, {"VISUAL": "sed -i s/lok/look/", "SHELL": "/bin/sh"})
        bench.write(notes_txt="of the file\n")
        (bench.home / "commands").mkdir(parents=True)
        (bench.home / "commands" / "review.md").write_text("Review $1.")
        chat = bench.chat("chat")
        chat.sees("> ")
        chat.enters("!printf 'of the \\033[2Jline\\n'; exit 3")
        chat.sees("of the line")
        chat.sees("[exit code 3]")
        chat.enters("/share")
        chat.sees("Your next message includes")
        chat.types("lok @not\t")
        chat.sees("es.txt")
        chat.types("\x18\x05")
        chat.sees("ok @notes.txt")
        chat.enters("")
        chat.sees("first")
        chat.enters("/review notes.txt")
        chat.sees("second")
        chat.types("\x04")

        assert chat.ends() == 0

    said, reviewed = (body["messages"][-1]["content"] for body in server.bodies)
    assert said.startswith('look @notes.txt\n\n<file path="notes.txt">')
    assert "of the file" in said
    assert said.endswith("[exit code 3]\n```")
    assert reviewed == "Review notes.txt."
