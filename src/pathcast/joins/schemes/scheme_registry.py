"""The schemes of Table 1 of the select-join paper, by name."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pathcast.errors import QueryError

from ..server.row_multisets import Bag
from .group_message_semijoin_scheme import ReformulatedSemijoins, RelaxedSelections
from .join_result_schemes import EnumeratedResults, ReformulatedResults, ResultScheme
from .per_subscription_semijoin_scheme import EnumeratedSemijoins
from .semijoin_group_deltas import IndexMaker
from .semijoin_scheme import SemijoinScheme

Scheme: TypeAlias = SemijoinScheme | ResultScheme
_Maker: TypeAlias = Callable[[Mapping[str, Bag], IndexMaker, int | None], Scheme]


def _skyline(flavour: str) -> _Maker:
    return lambda bags, index, axes: ReformulatedSemijoins(bags, index, flavour, axes=axes)


_MAKERS: dict[str, _Maker] = {
    "enum-j": lambda bags, index, _: EnumeratedResults(bags, index),
    "rel-sel": lambda bags, index, _: RelaxedSelections(bags, index),
    "ref-j": lambda bags, index, _: ReformulatedResults(bags, index, wanted=False),
    "ref-j+": lambda bags, index, _: ReformulatedResults(bags, index, wanted=True),
    "enum-sj": lambda bags, index, axes: EnumeratedSemijoins(bags, index, axes=axes),
    "ref-sj-sub": _skyline("sub"),
    "ref-sj-tup": _skyline("tup"),
    "ref-sj-clu": _skyline("clu"),
    "ref-sj-clu+": _skyline("clu+"),
    "ref-sj-min": _skyline("min"),
}
SCHEMES = tuple(_MAKERS)
DEFAULT = "ref-sj-clu+"


def make_scheme(name: str, bags: Mapping[str, Bag], index: IndexMaker, axes: int | None) -> Scheme:
    """A scheme over some tables."""
    if name not in _MAKERS:
        raise QueryError(f"unknown scheme '{name}'; use one of {', '.join(SCHEMES)}")
    return _MAKERS[name](bags, index, axes)
