"""Local models that were tried with this program: how their files are told, and under which licence they come."""

from dataclasses import dataclass

__all__ = ["KNOWN", "KnownModel", "known_by_size"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One file, byte for byte."""

    name: str
    bytes: int
    sha256: str
    licence: str
    memory: str
    """Main memory it takes."""
    about: str
    """What was found out about it."""


KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        "Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Apache-2.0",
        "1.9 GB",
        "picks the right single action of 20 in 19",
    ),
    KnownModel(
        "Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Apache-2.0",
        "0.7 GB",
        "weaker and three times as fast: for machines with little memory",
    ),
)


def known_by_size(size: int) -> KnownModel | None:
    """The model whose file has this many bytes."""
    return next((known for known in KNOWN if known.bytes == size), None)
