"""NDDR against IDDR, by how often an exchange repeats an element (§5.2, "NDDR vs. IDDR").

A publisher has articles inside their authors; the global schema has authors inside articles. Each author of n articles
comes n times in the rewritten document: between reader and engine it is written and matched n times, inside the engine
it is walked once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged, race, ratio

from . import mediation_claims as claims
from .mediation_workloads import IDDR, NDDR, SDR, Sent, Way, all_of, matching_by, subscriptions_to

if TYPE_CHECKING:
    from pathcast.mediation import Mediator

_AUTHOR = (
    "name/first",
    "name/last",
    "born/year",
    "born/place/city",
    "born/place/country",
    "affiliation/institute",
    "affiliation/address/street",
    "affiliation/address/city",
    "affiliation/address/country",
    "contact/email",
    "contact/phone",
    "contact/page",
    "degree/title",
    "degree/school",
    "degree/year",
    "interest/keyword",
    "interest/area",
)
_ARTICLE = ("title", "year", "pages")
_WAYS = (Way(SDR, "xtrie"), Way(NDDR, "xtrie"), Way(IDDR, "xtrie"))


@dataclass(frozen=True)
class Repeats:
    """Articles per author, authors per document, and the number of documents."""

    repeats: tuple[int, ...] = (1, 2, 4, 6, 8)
    authors: int = 20
    documents: int = 4
    subscriptions: int = 1_000
    rounds: int = 7


def mediator_of_authors() -> "Mediator":
    """A mediator with the publisher `authors`, whose articles are inside their authors."""
    from pathcast.mediation import Exchange, Mapping, Mediator
    from pathcast.mediation.mappings.schema_mapping import read_tree

    def lines(paths: tuple[str, ...], indent: int) -> list[str]:
        seen: list[str] = []
        for path in paths:
            steps = path.split("/")
            for depth, step in enumerate(steps):
                line = "  " * (indent + depth) + step + (" #text" if depth == len(steps) - 1 else "")
                if line not in seen or depth == len(steps) - 1:
                    seen.append(line)
        return seen

    author, article = lines(_AUTHOR, 2), lines(_ARTICLE, 3)
    local = read_tree("\n".join(["library", "  author*", *author, "    article*", *article]))
    inside = ["  " + line for line in author]
    glob = read_tree("\n".join(["library", "  article*", *lines(_ARTICLE, 2), "    author", *inside]))
    made = Mediator(glob)
    made.add(Mapping("authors", local, (Exchange("library/author", "article"),)))
    return made


def library(authors: int, repeats: int, random: Random) -> bytes:
    """A document in which every author has this many articles."""

    def nested(paths: tuple[str, ...]) -> str:
        out: list[str] = []
        open_steps: list[str] = []
        for path in paths:
            *groups, leaf = path.split("/")
            while open_steps and open_steps != groups[: len(open_steps)]:
                out.append(f"</{open_steps.pop()}>")
            for group in groups[len(open_steps) :]:
                out.append(f"<{group}>")
                open_steps.append(group)
            if random.random() < 0.9:
                out.append(f"<{leaf}>{random.randrange(1000)}</{leaf}>")
        return "".join([*out, *(f"</{group}>" for group in reversed(open_steps))])

    parts = []
    for _ in range(authors):
        articles = "".join(f"<article>{nested(_ARTICLE)}</article>" for _ in range(repeats))
        parts.append(f"<author>{nested(_AUTHOR)}{articles}</author>")
    return f"<library>{''.join(parts)}</library>".encode()


def _gain(rows: Rows, repeats: int) -> float:
    return 1 - rows.number("us", way=str(_WAYS[2]), repeats=repeats) / rows.number(
        "us", way=str(_WAYS[1]), repeats=repeats
    )


def _ahead(rows: Rows) -> Judgement:
    found = {count: _gain(rows, count) for count in rows.distinct("repeats") if isinstance(count, int) and count >= 4}
    said = ", ".join(f"{part:.0%} at {count} repeats" for count, part in found.items())
    return judged(bool(found) and min(found.values()) > 0, f"IDDR saves {said}")


def _grows(rows: Rows) -> Judgement:
    counts = sorted(count for count in rows.distinct("repeats") if isinstance(count, int))
    found = [_gain(rows, count) for count in counts]
    said = ", ".join(f"{part:.0%} at {count} repeats" for count, part in zip(counts, found, strict=True))
    return judged(found == sorted(set(found)) if len(found) > 1 else None, f"IDDR saves {said}")


def _behind(rows: Rows) -> Judgement:
    part = _gain(rows, 2)
    return judged(part < 0, f"IDDR saves {part:.0%} at 2 repeats")


@experiment(
    "mediation-exchange",
    title="Mediation: NDDR against IDDR as an exchange repeats",
    small=Repeats(),
    paper=Repeats(authors=40, documents=10, subscriptions=4_000, rounds=9),
    claims=(
        Claim("with 2 repeats NDDR is faster than IDDR", claims.PAPER, _behind, "faster", claims.WALKED_ONCE),
        Claim("IDDR is faster than NDDR from 4 repeats", claims.PAPER, _ahead, "faster"),
        Claim("the more repeats, the further IDDR is ahead", claims.PAPER, _grows, "grows"),
    ),
    plots=(
        Plot(
            "time",
            "Querying time as an exchange repeats",
            y="us",
            y_label="µs per document",
            series="way",
            x="repeats",
            x_label="articles per author",
            ours=(str(_WAYS[2]),),
        ),
    ),
    show={
        "repeats": "repeats",
        "way": "way",
        "us": "µs per document",
        "times": "times IDDR",
        "elements": "elements read",
        "rewritten": "elements rewritten",
    },
)
def exchange(run: Run, parameters: Repeats) -> Iterator[Row]:
    """Documents of authors with their articles inside; all ways run `xtrie` over the same subscriptions to a global
    schema that has authors inside articles. SDR reads the rewritten document.
    """
    from pathcast.documents import read_batch

    mediator = mediator_of_authors()
    asked = subscriptions_to(mediator.global_schema, parameters.subscriptions, run.seed)
    matching = {way: matching_by(way, mediator, asked) for way in _WAYS}
    for repeats in parameters.repeats:
        random = Random(f"{run.seed} {repeats}")
        sent = []
        for _ in range(parameters.documents):
            document = library(parameters.authors, repeats, random)
            rewritten = mediator.rewrite(document, "authors")
            sent.append(Sent("authors", document, rewritten, mediator.pack(document, "authors")))
        for each in sent:
            answers = {str(way): match(each) for way, match in matching.items()}
            run.check_equal("every way matches what the rewritten document matches", answers)
        run.begin(f"{repeats} repeats", parameters.rounds)
        times = race(
            {str(way): all_of([match], sent) for way, match in matching.items()},
            rounds=parameters.rounds,
            after_round=run.advance,
        )
        for way in map(str, _WAYS):
            yield {
                "repeats": repeats,
                "way": way,
                "us": 1e6 * times[way].median / len(sent),
                "times": ratio(times[way], times[str(_WAYS[2])]).median,
                "elements": len(read_batch([each.original for each in sent]).name) / len(sent),
                "rewritten": len(read_batch([each.rewritten for each in sent]).name) / len(sent),
            }
