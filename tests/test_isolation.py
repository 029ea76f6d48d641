import os
import socket
from pathlib import Path

import pytest

from tests.isolation import clean_environment


def test_a_test_cannot_connect_beyond_this_machine(isolated: list[str]) -> None:
    with pytest.raises(PermissionError), socket.socket() as plug:
        plug.connect(("192.0.2.7", 80))

    assert isolated == ["192.0.2.7"]
    isolated.clear()


def test_a_test_cannot_look_up_a_foreign_name(isolated: list[str]) -> None:
    with pytest.raises(PermissionError):
        socket.create_connection(("model.example", 443))

    assert isolated == ["model.example"]
    isolated.clear()


def test_a_server_on_the_loopback_address_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with socket.create_connection(("localhost", port)) as client:
            peer = client.getpeername()

    assert peer == ("127.0.0.1", port)


def test_settings_and_keys_of_the_person_at_the_keyboard_are_hidden_and_come_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("HOME", "/somewhere")

    with clean_environment(tmp_path):
        inside = ("OPENAI_API_KEY" in os.environ, os.environ["HOME"])

    assert inside == (False, str(tmp_path))
    assert (os.environ["OPENAI_API_KEY"], os.environ["HOME"]) == ("secret", "/somewhere")
