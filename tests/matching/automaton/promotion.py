"""Matchers whose engine builds its next generation in another thread."""

from time import sleep

from pathcast import Matcher
from pathcast.matching.automaton import AutomatonEngine
from pathcast.matching.automaton.updates.immutable_index_state import Generation


def at_rest(matcher: Matcher) -> Generation:
    """The generation, once no thread works on the next one."""
    engine = matcher.engine
    assert isinstance(engine, AutomatonEngine)
    for _ in range(3000):
        if engine._updates._worker is None:
            break
        sleep(0.01)
    return engine._updates.current
