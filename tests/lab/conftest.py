"""A toy experiment: two rivals that count the same thing, and no clock in its rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from pathcast_lab.harness import Claim, Experiment, Plot, Row, Run, judged


@dataclass(frozen=True)
class Counting:
    sizes: tuple[int, ...] = (1, 10, 100)
    rival: str = "theirs"


def count(run: Run, parameters: Counting) -> Iterator[Row]:
    """Counts to each size."""
    for size in run.steps("counting", parameters.sizes):
        run.check_equal("both count the same", {"ours": size, parameters.rival: size})
        yield {"size": size, "counter": "ours", "ms": size / 10}
        yield {"size": size, "counter": parameters.rival, "ms": float(size)}
    run.note("Counted on paper.")


TIME = Plot("time", "Time to count", "ms", "ms", "counter", x="size", x_label="size", ours=("ours",), log="xy")


def counting(
    measure: Callable[[Run, Counting], Iterator[Row]] = count, name: str = "counting", plots: Sequence[Plot] = ()
) -> Experiment:
    """The toy, or one with another function or name; drawing takes a while, so without plots."""
    return Experiment(
        name=name,
        title="How fast one counts",
        measure=measure,
        parameters={"small": Counting(), "paper": Counting(sizes=(1, 10, 100, 1000))},
        claims=(
            Claim(
                "ours is ten times faster at 100",
                "paper, §1",
                lambda rows: judged(
                    rows.number("ms", size=100, counter="theirs") >= 10 * rows.number("ms", size=100, counter="ours"),
                    f"{rows.number('ms', size=100, counter='theirs'):g} ms",
                ),
            ),
            Claim("it fits in no time", "target", lambda rows: judged(max(rows.numbers("ms")) == 0, "some time")),
        ),
        plots=plots,
        show={"size": "size", "counter": "counter", "ms": "ms"},
    )


@pytest.fixture
def toy() -> Experiment:
    return counting()


@pytest.fixture
def drawn_toy() -> Experiment:
    return counting(plots=(TIME,))


@pytest.fixture
def toy_with() -> Callable[..., Experiment]:
    return counting
