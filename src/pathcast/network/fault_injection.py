"""Faults: what goes wrong on links and at nodes, drawn from a seed.

    Faults(seed=7, drop=0.1, duplicate=0.05, delay=0.2, crashes=[Crash("r3", at=0.02, down=0.5)])

A packet is dropped, or arrives twice, or late by up to `longest` seconds, so that others overtake it. A node that
crashes loses its soft state and everything in its hands, and hears nothing while it is down; its subscriptions and
tables it keeps (they stand on disk). The server keeps what it has published until it knows that all have it.

Invariant: a schedule is its parameters: the same give the same faults at the same packets.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pathcast.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Crash:
    """A node fails so many seconds after a run has begun, and is back after `down` seconds.

    In a CAN, None is never: its neighbours notice, and another node takes its place.
    """

    node: str
    at: float
    down: float | None

    def __post_init__(self) -> None:
        times: list[object] = [self.at, 0 if self.down is None else self.down]
        if not all(isinstance(time, int | float) and time >= 0 for time in times):
            raise TopologyError(f"a crash at {self.at} seconds for {self.down} can't be: times are 0 or more")


@dataclass
class Faults:
    """Probabilities a packet, and crashes."""

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
                raise TopologyError(f"{name} is a probability below 1, not {chance!r}")
        crashes: object = self.crashes
        if not isinstance(crashes, Sequence) or not all(isinstance(crash, Crash) for crash in crashes):
            raise TopologyError(f"crashes is a list of Crash(…), not {crashes!r}")
        longest: object = self.longest
        if not isinstance(longest, int | float) or not longest >= 0:
            raise TopologyError(f"packets are late by 0 seconds or more, not by up to {self.longest!r}")
        self._draw = random.Random(self.seed)

    @classmethod
    def drawn(cls, seed: int, nodes: Sequence[str], *, within: float = 2.0) -> "Faults":
        """A schedule drawn from a seed: how bad links are, and up to three crashes a run."""
        draw = random.Random(seed)
        crashes = [
            Crash(draw.choice(nodes), draw.uniform(0, within), draw.uniform(0, within))
            for _ in range(draw.randrange(4))
        ]
        drop, duplicate, delay = (draw.choice([0.0, draw.uniform(0, 0.4)]) for _ in range(3))
        return cls(seed, drop, duplicate, delay, draw.uniform(0, within), crashes)

    def delays(self) -> list[float]:
        """For each copy of a packet that arrives, by how much it is late."""
        if self._draw.random() < self.drop:
            return []
        copies = 2 if self._draw.random() < self.duplicate else 1
        return [self._draw.uniform(0, self.longest) if self._draw.random() < self.delay else 0.0 for _ in range(copies)]
