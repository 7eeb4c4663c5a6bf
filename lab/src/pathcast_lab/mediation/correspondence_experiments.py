"""Correspondences of real document formats: precision, recall and confidence, on domains that no weight was fitted on.

For each domain (invoices, orders, feeds, articles, contacts, products) the weights are fitted on all other domains.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Row, Rows, Run, experiment, judged, number_in

if TYPE_CHECKING:
    from pathcast.mediation import Pair


@dataclass(frozen=True)
class Correspondences:
    """Sample documents per format; `courses`: a folder with the course catalogues of three universities."""

    documents: int = 10
    twins: int = 5
    domains: tuple[str, ...] = ("article", "contact", "feed", "invoice", "order", "product")
    courses: str = ""


def _score(rows: Rows, samples: str) -> float:
    row = next(iter(rows.where(samples=samples, domain="all")))
    return number_in(row, "f1")


def _with_samples(rows: Rows) -> Judgement:
    found = _score(rows, "items of their own")
    return judged(found >= 0.85, f"F1 {found:.3f}")


def _with_twins(rows: Rows) -> Judgement:
    found = _score(rows, "the same items")
    return judged(found >= 0.95, f"F1 {found:.3f}")


def _sure(rows: Rows) -> Judgement:
    found = [row for row in rows.where(domain="all") if row["samples"] != "none"]
    sure, wrong = (sum(number_in(row, key) for row in found) for key in ("sure", "sure_wrong"))
    return judged(wrong <= 0.02 * sure, f"{wrong:.0f} of {sure:.0f} pairs are wrong")


@experiment(
    "mediation-correspondence",
    title="Mediation: correspondences of real document formats",
    small=Correspondences(),
    paper=Correspondences(documents=20),
    claims=(
        Claim("with samples F1 is at least 0.85", "target", _with_samples, "0.85"),
        Claim("with samples of the same items F1 is at least 0.95", "target", _with_twins, "0.95"),
        Claim("of pairs with a confidence above 0.9 at most 2 % are wrong", "target", _sure, "2 %"),
    ),
    show={
        "samples": "samples",
        "domain": "domain",
        "pairs": "true pairs",
        "precision": "precision",
        "recall": "recall",
        "f1": "F1",
        "sure": "confidence above 0.9",
        "sure_wrong": "of them wrong",
    },
)
def correspondences(run: Run, parameters: Correspondences) -> Iterator[Row]:
    """Samples of two formats, each with items of its own from the same pools, with different ones from separate pools,
    with the same ones (twins), or the schemas alone. Proposed pairs are compared with the truth; the pair of the roots
    does not count. The weights for a domain are fitted on the other domains.
    """
    from .pair_model_fitting import fit, known_pair, proposed
    from .schema_pair_suite import course_pairs, schema_pairs

    count, seed, wanted = parameters.documents, run.seed, parameters.domains
    suites = {
        "items of their own": schema_pairs(count, seed),
        "different items": schema_pairs(count, seed, "different"),
        "the same items": schema_pairs(parameters.twins, seed, "same"),
        "none": schema_pairs(count, seed),
    }
    known = [
        (name, pair, known_pair(pair, samples=name != "none"))
        for name, pairs in suites.items()
        for pair in pairs
        if pair.domain in wanted
    ]
    if parameters.courses:
        known += [("one document", pair, known_pair(pair)) for pair in course_pairs(Path(parameters.courses))]
    domains = list(dict.fromkeys(pair.domain for _, pair, _ in known))
    run.begin("domains", len(domains))
    totals = {name: [0] * 5 for name, _, _ in known}
    for domain in domains:
        weights = fit([each for _, pair, each in known if pair.domain not in (domain, "course")])
        found: dict[str, list[int]] = {}
        for name, pair, each in known:
            if pair.domain == domain:
                pairs = proposed(each, weights)
                sides = {"local": len({one.local for one in pairs}), "global": len({one.glob for one in pairs})}
                run.check_equal("each node is in one pair only", {**sides, "pairs": len(pairs)})
                counts = _counts(pair.truth, pairs)
                found[name] = [sum(both) for both in zip(found.get(name, [0] * 5), counts, strict=True)]
        for name, counts in found.items():
            totals[name] = [sum(both) for both in zip(totals[name], counts, strict=True)]
            yield _row(name, domain, counts)
        run.advance()
    for name, counts in totals.items():
        yield _row(name, "all", counts)


def _counts(truth: "Mapping[str, str]", pairs: "list[Pair]") -> list[int]:
    """Right pairs, proposed pairs, true pairs, sure pairs, sure pairs that are wrong; the roots do not count."""
    from pathcast.mediation.schemas import parent_of

    inner = {path: other for path, other in truth.items() if parent_of(path)}
    judged_pairs = [
        (inner.get(pair.local) == pair.glob, pair.confidence > 0.9) for pair in pairs if parent_of(pair.local)
    ]
    right = sum(is_right for is_right, _ in judged_pairs)
    sure = [is_right for is_right, is_sure in judged_pairs if is_sure]
    return [right, len(judged_pairs), len(inner), len(sure), len(sure) - sum(sure)]


def _row(samples: str, domain: str, found: list[int]) -> Row:
    right, proposed, true, sure, wrong = found
    return {
        "samples": samples,
        "domain": domain,
        "pairs": true,
        "precision": right / max(1, proposed),
        "recall": right / max(1, true),
        "f1": 2 * right / max(1, proposed + true),
        "sure": sure,
        "sure_wrong": wrong,
    }
