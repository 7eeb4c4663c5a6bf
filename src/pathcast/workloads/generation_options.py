"""Options of generated subscriptions and documents; values out of range raise `ValueError` on creation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PredicateSteps = Literal["any", "named"]
OPERATORS = ("=", "<=", ">=")
TARGETS = ("attribute", "text")


@dataclass(frozen=True, kw_only=True)
class SubscriptionOptions:
    """Options of generated subscriptions.

    max_depth: levels of a walk; with `min_depth`, each walk draws its depth from between the two.
    wildcard, descendant: probabilities of `*` for a step and of a `//` before it.
    last_wildcard: the last step may be `*`, too; by default it has a name.
    skew: Zipf's exponent for the choice of a child; 0 is uniform.
    predicates: value predicates per subscription, at random steps (fewer if a path has fewer attributes and texts);
        or predicate_probability, for each attribute and text of each step. predicate_steps: at any step, or only at
        those with a name (not at `*`).
    nested: nested paths per subscription (fewer if a path has fewer other children); or nested_probability per step.
    distinct: no two subscriptions have the same text.
    match_rate: the target mean share of matched documents.
    """

    max_depth: int = 6
    min_depth: int | None = None
    wildcard: float = 0.2
    descendant: float = 0.2
    last_wildcard: bool = False
    skew: float = 0.0
    predicates: int = 0
    predicate_probability: float = 0.0
    operators: Sequence[str] = OPERATORS
    predicate_targets: Sequence[str] = TARGETS
    predicate_steps: PredicateSteps = "any"
    nested: int = 0
    nested_probability: float = 0.0
    distinct: bool = False
    match_rate: float | None = None

    def __post_init__(self) -> None:
        if self.max_depth < 1 or not 1 <= (self.min_depth or 1) <= self.max_depth:
            raise ValueError(
                f"depths must satisfy 1 <= min_depth <= max_depth, got min_depth={self.min_depth} and "
                f"max_depth={self.max_depth}"
            )
        for name in ("skew", "predicates", "nested"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        for name in ("wildcard", "descendant", "predicate_probability", "nested_probability", "match_rate"):
            _check_probability(name, getattr(self, name))
        _check_choices("operators", self.operators, OPERATORS)
        _check_choices("predicate_targets", self.predicate_targets, TARGETS)
        if self.predicate_steps not in ("any", "named"):
            raise ValueError(f"predicate_steps must be 'any' or 'named', got {self.predicate_steps!r}")
        for number, chance in (("predicates", "predicate_probability"), ("nested", "nested_probability")):
            if getattr(self, number) and getattr(self, chance):
                given = f"{number}={getattr(self, number)} and {chance}={getattr(self, chance)}"
                raise ValueError(f"{given} cannot be combined; give only one of them")


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """Options of generated documents.

    max_levels: optional parts appear down to this level below the root.
    max_repeats: the maximum number of repetitions of `*` and `+`.
    attribute_probability: of optional attributes; None draws one per attribute.
    max_elements: beyond this size, a document ends as early as its schema allows.
    """

    max_levels: int = 6
    max_repeats: int = 3
    attribute_probability: float | None = None
    max_elements: int = 10_000

    def __post_init__(self) -> None:
        for name in ("max_levels", "max_repeats", "max_elements"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        _check_probability("attribute_probability", self.attribute_probability)


def _check_probability(name: str, probability: float | None) -> None:
    if probability is not None and not 0 <= probability <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {probability}")


def _check_choices(name: str, given: Sequence[str], possible: Sequence[str]) -> None:
    if not given or any(each not in possible for each in given):
        raise ValueError(f"{name} must be one or more of {', '.join(map(repr, possible))}, got {list(given)!r}")
