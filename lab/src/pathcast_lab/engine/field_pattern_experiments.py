"""Field patterns over events: ours on XML beside engines for JSON that the user names with `--rival`.

The rivals (quamina, event-ruler, Lucene Monitor) get each pattern and each event as one line of JSON; ours gets the
same patterns as XPath and the same events as XML (field_patterns.py). Every time is from bytes to the numbers of all
matches.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import (
    Claim,
    Judgement,
    MissingRowError,
    Plot,
    RivalProgram,
    Row,
    Rows,
    Run,
    check_matches,
    every,
    experiment,
    number_in,
    race,
    ratio,
)

if TYPE_CHECKING:
    from pathcast.matching import Matcher

OURS = "pathcast"
RIVALS = ("quamina", "event-ruler", "lucene-monitor")


@dataclass(frozen=True)
class FieldPatterns:
    """`checked` is the number of events on which our answers are compared with the plain matcher's."""

    sizes: tuple[int, ...] = (1_000, 10_000)
    events: int = 1_000
    checked: int = 20
    rounds: int = 7


def _as_fast_as(rival: str) -> Callable[[Rows], Judgement]:
    """A judge: at every size ours handles at least as many events per second as a rival."""

    def judge(rows: Rows) -> Judgement:
        found = {f"at {row['patterns']:,}": number_in(row, "times") for row in rows.where(series=rival)}
        if not found:
            raise MissingRowError(f"{rival} was not part of the run")
        return every(found, f"{{:.2f}} times as many as {rival}", least=1)

    return judge


@experiment(
    "engine-fields",
    title="Field patterns over events: events per second",
    small=FieldPatterns(),
    paper=FieldPatterns(sizes=(10_000, 100_000), events=5_000, checked=50, rounds=9),
    claims=tuple(
        Claim(f"at least as many events per second as {rival}", "target", _as_fast_as(rival), "1 times")
        for rival in RIVALS
    ),
    plots=(
        Plot(
            "events",
            "Events per second",
            y="events_per_s",
            y_label="events per second",
            series="series",
            x="patterns",
            x_label="distinct field patterns",
            ours=(OURS,),
            log="xy",
        ),
    ),
    show={
        "patterns": "patterns",
        "series": "engine",
        "matches": "matches per event",
        "events_per_s": "events per second",
        "us": "µs per event",
        "us_low": "from",
        "us_high": "to",
        "times": "ours is faster by",
        "build_s": "built in s",
    },
    rivals=RIVALS,
)
def engine_fields(run: Run, parameters: FieldPatterns) -> Iterator[Row]:
    """Distinct field patterns (equality, alternatives, prefix, anything-but, exists, in nested fields) are matched
    against events of ten fields. Ours reads each event as XML and matches the patterns as XPath; rivals read JSON. Our
    answers are compared with those of a plain matcher over the JSON, and each rival's answers to all events with ours.
    Rivals are programs of their own, which get the events beforehand; a round is one pass over all events. Building
    includes the transfer of the patterns to the program.
    """
    if not run.rivals:
        run.note("No rival took part; name one with --rival, such as --rival quamina=PATH.")
    for size in parameters.sizes:
        yield from _measure(run, parameters, size)


def _measure(run: Run, parameters: FieldPatterns, size: int) -> Iterator[Row]:
    import pathcast

    from .field_pattern_workload import draw_events, draw_patterns
    from .field_patterns import to_xml, to_xpath

    run.begin(f"{size:,} field patterns")
    patterns, events = draw_patterns(size, run.seed), draw_events(parameters.events, run.seed)
    documents = [to_xml(event) for event in events]
    begin = perf_counter()
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([to_xpath(pattern) for pattern in patterns])
    matcher = subscriptions.compile()
    built = {OURS: perf_counter() - begin}
    ours = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    _check_ours(run, parameters, patterns, events, ours)
    with ExitStack() as programs:
        once = _passes(matcher, documents)
        expected = sum(map(len, ours))
        competitors: dict[str, Callable[[], object]] = {OURS: once}
        for name, command in run.rivals.items():
            run.begin(f"{name}: {size:,} field patterns")
            program = programs.enter_context(RivalProgram(name, command))
            built[name] = program.build(_as_lines(patterns), _as_lines(events))
            check_matches(run, name, ours, program.match())
            competitors[name] = lambda program=program: program.run_checked(expected)  # type: ignore[misc]
        for _ in range(5):  # so that patterns have selected their access predicates
            once()
        run.begin(f"matching {size:,} field patterns", parameters.rounds)
        times = race(competitors, rounds=parameters.rounds, after_round=run.advance)
    for name, time in times.items():
        low, high = time.interval
        yield {
            "patterns": size,
            "series": name,
            "matches": expected / len(events),
            "events_per_s": len(events) / time.median,
            "us": time.median / len(events) * 1e6,
            "us_low": low / len(events) * 1e6,
            "us_high": high / len(events) * 1e6,
            "times": ratio(time, times[OURS]).median,
            "build_s": built[name],
        }


def _passes(matcher: "Matcher", documents: list[bytes]) -> Callable[[], object]:
    """A function that reads all documents, matches them and writes the ids."""
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader

    reader = Reader(matcher.subscriptions.table.names, Limits(), "refuse")
    return lambda: matcher.match_batch(reader.read(documents, borrowed=True))


def _check_ours(
    run: Run,
    parameters: FieldPatterns,
    patterns: list[dict[str, Any]],
    events: list[dict[str, Any]],
    ours: list[list[int]],
) -> None:
    from .field_patterns import matches

    some = events[: parameters.checked]
    plain = [[number for number, pattern in enumerate(patterns, 1) if matches(pattern, event)] for event in some]
    check_matches(run, "the plain matcher over JSON", ours[: len(some)], plain)


def _as_lines(values: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(value, separators=(",", ":")) for value in values]
