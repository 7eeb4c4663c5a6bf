"""The engines, by name. The first is the default."""

from importlib import import_module
from typing import cast

from .engine_contract import Engine

# Where to find each engine: it is imported on first use, since each brings its own kernels.
_ENGINES = {
    "automaton": ("pathcast.matching.automaton", "AutomatonEngine"),
    "gpx": ("pathcast.literature.gpx", "GpxEngine"),
    "gpx-ap": ("pathcast.literature.gpx", "GpxLastEngine"),
    "gpx-apf": ("pathcast.literature.gpx", "GpxFirstEngine"),
    "yfilter": ("pathcast.literature.yfilter", "YFilterEngine"),
    "xtrie": ("pathcast.literature.xtrie", "XTrieEngine"),
    "bpa": ("pathcast.literature.bpa", "BPAEngine"),
    "reference": ("pathcast.matching.reference", "ReferenceEngine"),
}


def engines() -> tuple[str, ...]:
    """The names of all engines, the default one first.

    >>> pathcast.matching.engines()[0]
    'automaton'
    """
    return tuple(_ENGINES)


def engine_class(name: str | None) -> type[Engine]:
    """The engine with this name; the default one for None."""
    if name is None:
        name = engines()[0]
    if name not in _ENGINES:
        raise ValueError(f"unknown engine {name!r}; use one of {', '.join(engines())}")
    module, attribute = _ENGINES[name]
    return cast("type[Engine]", getattr(import_module(module), attribute))
