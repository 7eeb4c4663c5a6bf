"""After any history of changes and subscriptions, under every scheme, every client has DuckDB's answer."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pathcast.joins import SCHEMES

from .world import World

# Shrinking a history takes minutes; a failure prints the one that was found.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_clients_have_the_answer_after_any_history(scheme: str) -> None:
    @given(st.data())
    @settings(max_examples=10, phases=PHASES)
    def check(data: st.DataObject) -> None:
        def choose(options: Sequence[Any]) -> Any:
            return data.draw(st.sampled_from(options))

        world = World(scheme)
        world.live(choose, 6, 4, 10)
        world.check_rows()
        world.database.close()

    check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "axes"),
    [*((scheme, None) for scheme in SCHEMES), ("enum-sj", 1), ("ref-sj-tup", 1), ("ref-sj-clu+", 1)],
)
def test_clients_have_the_answer_after_long_random_runs(
    scheme: str, axes: int | None, request: pytest.FixtureRequest
) -> None:
    for seed in range(100 if request.config.getoption("--long") else 1):
        random = Random(f"{scheme} {axes} {seed}")
        world = World(scheme, axes=axes)
        for _ in range(4):
            world.live(random.choice, 8, 12, 40)
            world.check_rows()
        world.database.close()
