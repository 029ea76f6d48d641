"""A real SOCKS5 proxy on 127.0.0.1, without authentication, that notes where it was asked to connect."""

import contextlib
import socket
import threading
from collections.abc import Iterator

__all__ = ["socks_proxy"]


@contextlib.contextmanager
def socks_proxy() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the hosts and ports that clients asked for."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, asked), daemon=True).start()
        yield f"socks5://127.0.0.1:{listener.getsockname()[1]}", asked


def _serve(listener: socket.socket, asked: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_connect, args=(client, asked), daemon=True).start()


def _connect(client: socket.socket, asked: list[str]) -> None:
    with client, contextlib.suppress(OSError, IndexError):
        client.recv(2 + 255)  # Its methods of authentication.
        client.sendall(b"\x05\x00")
        request = client.recv(4 + 256 + 2)
        is_name = request[3] == 3
        name = request[5:-2].decode() if is_name else socket.inet_ntoa(request[4:8])
        port = int.from_bytes(request[-2:], "big")
        asked.append(f"{name}:{port}")
        with socket.create_connection((name, port)) as server:
            client.sendall(b"\x05\x00\x00\x01" + bytes(6))
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
