"""Faults on links and at nodes; a seed determines the schedule.

    Faults(seed=7, drop=0.1, duplicate=0.05, delay=0.2, crashes=[Crash("r3", at=0.02, down=0.5)])

A packet may be dropped, duplicated, or delayed by up to `longest` seconds, so that others overtake it. A node that
crashes loses its soft state and its jobs, and receives nothing while it is down; it keeps its subscriptions and tables,
which are on disk. The server keeps a publication until all nodes have acknowledged it.

Invariant: equal parameters give the same faults at the same packets.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pathcast.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Crash:
    """A node fails `at` seconds after the start of a run, and restarts after `down` seconds.

    In a CAN, `down=None` means never: its neighbours detect the failure, and another node takes its place.
    """

    node: str
    at: float
    down: float | None

    def __post_init__(self) -> None:
        times: list[object] = [self.at, 0 if self.down is None else self.down]
        if not all(isinstance(time, int | float) and time >= 0 for time in times):
            raise TopologyError(
                f"the times of a crash must be at least 0 seconds, got at={self.at!r}, down={self.down!r}"
            )


@dataclass
class Faults:
    """Probabilities per packet, and crashes."""

    seed: int = 0
    drop: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0
    longest: float = 1.0
    crashes: Sequence[Crash] = ()
    _draw: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("drop", "duplicate", "delay"):
            chance = getattr(self, name)
            if not isinstance(chance, int | float) or not 0 <= chance < 1:
                raise TopologyError(f"{name} must be a probability of at least 0 and below 1, got {chance!r}")
        crashes: object = self.crashes
        if not isinstance(crashes, Sequence) or not all(isinstance(crash, Crash) for crash in crashes):
            raise TopologyError(f"crashes must be a list of Crash(…), got {crashes!r}")
        longest: object = self.longest
        if not isinstance(longest, int | float) or not longest >= 0:
            raise TopologyError(f"longest must be at least 0 seconds, got {self.longest!r}")
        self._draw = random.Random(self.seed)

    @classmethod
    def drawn(cls, seed: int, nodes: Sequence[str], *, within: float = 2.0) -> "Faults":
        """A random schedule, determined by a seed: fault probabilities, and up to three crashes per run."""
        draw = random.Random(seed)
        crashes = [
            Crash(draw.choice(nodes), draw.uniform(0, within), draw.uniform(0, within))
            for _ in range(draw.randrange(4))
        ]
        drop, duplicate, delay = (draw.choice([0.0, draw.uniform(0, 0.4)]) for _ in range(3))
        return cls(seed, drop, duplicate, delay, draw.uniform(0, within), crashes)

    def delays(self) -> list[float]:
        """The delay of each copy of a packet that arrives."""
        if self._draw.random() < self.drop:
            return []
        copies = 2 if self._draw.random() < self.duplicate else 1
        return [self._draw.uniform(0, self.longest) if self._draw.random() < self.delay else 0.0 for _ in range(copies)]
