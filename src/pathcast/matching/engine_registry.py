"""The engines, by name. The first is the default."""

from collections.abc import Callable

from .engine_contract import Engine


def _automaton() -> type[Engine]:
    from .automaton import AutomatonEngine

    return AutomatonEngine


def _gpx() -> type[Engine]:
    from pathcast.literature.gpx import GpxEngine

    return GpxEngine


def _gpx_ap() -> type[Engine]:
    from pathcast.literature.gpx import GpxLastEngine

    return GpxLastEngine


def _gpx_apf() -> type[Engine]:
    from pathcast.literature.gpx import GpxFirstEngine

    return GpxFirstEngine


def _reference() -> type[Engine]:
    from .reference import ReferenceEngine

    return ReferenceEngine


def _yfilter() -> type[Engine]:
    from pathcast.literature.yfilter import YFilterEngine

    return YFilterEngine


def _xtrie() -> type[Engine]:
    from pathcast.literature.xtrie import XTrieEngine

    return XTrieEngine


def _bpa() -> type[Engine]:
    from pathcast.literature.bpa import BPAEngine

    return BPAEngine


# An engine is imported when it is first asked for: each brings kernels of its own.
_ENGINES: dict[str, Callable[[], type[Engine]]] = {
    "automaton": _automaton,
    "gpx": _gpx,
    "gpx-ap": _gpx_ap,
    "gpx-apf": _gpx_apf,
    "yfilter": _yfilter,
    "xtrie": _xtrie,
    "bpa": _bpa,
    "reference": _reference,
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
        raise ValueError(f"there is no engine '{name}'; engines: {', '.join(engines())}")
    return _ENGINES[name]()
