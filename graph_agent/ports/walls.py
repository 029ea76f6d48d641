"""What a person is told of the sandbox that commands run in. Knows nothing of what it is made of."""

from dataclasses import dataclass

__all__ = ["Walls", "no_walls"]


@dataclass(frozen=True, slots=True)
class Walls:
    """The sandbox as it is on this machine, now."""

    name: str
    """bubblewrap, Landlock; none where there is nothing to make one of; off where the user wants none."""
    told: str
    """What a command may do in it, or why there is none."""
    stands: bool = False
    tools: tuple[str, ...] = ("bash", "powershell")
    """The tools whose calls it is about."""

    @property
    def label(self) -> str:
        """For a status line."""
        return "no sandbox" if self.name == "none" else f"sandbox {self.name}"


def no_walls() -> Walls:
    """For sessions that nobody built a sandbox for."""
    return Walls("off", "commands run with all your rights", tools=())
