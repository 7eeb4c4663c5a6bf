"""Reports: the result of each batch, kept next to the checkpoint.

    checkpoint/pathcast/reports/17.json

Invariant: a report is passed on only after Spark has committed its micro-batch. The last `RETAINED` reports are kept.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..publishing.micro_batch_version_pins import RETAINED
from .checkpoint_reader import done
from .pipeline_sections import Stream


@dataclass(frozen=True)
class Report:
    """The result of a batch, or of the micro-batch with this number.

    `query` distinguishes it from reports of joins; `version` is that of the index; `matches` counts pairs of document
    and subscriber (with `by = "id"`, subscription); `memo_hit_rate` is the share of elements whose path the engine had
    already seen; `deferred` counts files that were still being written, None if the source does not defer files.
    """

    batch: int | None
    version: int | None
    documents: int
    matches: int
    dead_letters: int
    memo_hit_rate: float | None
    seconds: float
    query: str = "documents"
    deferred: int | None = None

    @classmethod
    def of(
        cls,
        batch: int | None,
        version: int | None,
        found: Mapping[str, Any],
        begin: float,
        deferred: int | None = None,
    ) -> "Report":
        """The report of a batch, from its start time and counts."""
        elements = found.get("elements")
        return cls(
            batch=batch,
            version=version,
            documents=found["rows"],
            matches=found["deliveries"] if "deliveries" in found else found["matches"],
            dead_letters=found["dead_letters"],
            memo_hit_rate=round(1 - found["new_paths"] / elements, 6) if elements else None,
            seconds=round(time.perf_counter() - begin, 3),
            deferred=deferred,
        )

    def __str__(self) -> str:
        parts = [
            f"{self.documents:,} documents",
            f"{self.matches:,} matches",
            f"{self.dead_letters:,} dead letters",
            f"{self.seconds:.1f} s",
            f"{self.documents / self.seconds if self.seconds else 0:,.0f} documents/s",
        ]
        if self.memo_hit_rate is not None:
            parts.append(f"memo {100 * self.memo_hit_rate:.1f} %")
        if self.version is not None:
            parts.append(f"index version {self.version}")
        if self.deferred:
            parts.append(f"{_files(self.deferred)} deferred")
        return f"batch{'' if self.batch is None else f' {self.batch}'}: {', '.join(parts)}"


@dataclass(frozen=True)
class JoinReport:
    """The result of standing joins for a batch, or for the micro-batch with this number.

    `deliveries` counts pairs of message and subscription, `contents` messages to new subscriptions; None if they are
    not written. `version` is that of the subscriptions.
    """

    batch: int | None
    messages: int
    dead_letters: int
    seconds: float
    query: str = "joins"
    deliveries: int | None = None
    contents: int | None = None
    version: int | None = None

    def __str__(self) -> str:
        parts = [f"{self.messages:,} messages"]
        if self.deliveries is not None:
            parts.append(f"{self.deliveries:,} deliveries")
        if self.contents is not None:
            parts.append(f"{self.contents:,} initial contents")
        parts += [f"{self.dead_letters:,} dead letters", f"{self.seconds:.1f} s"]
        if self.version is not None:
            parts.append(f"subscriptions version {self.version}")
        return f"joins{'' if self.batch is None else f', batch {self.batch}'}: {', '.join(parts)}"


@dataclass(frozen=True)
class DeferredReport:
    """The files that a stream left for its next run because they were still being written; `files` has the first."""

    deferred: int
    files: list[str]
    query: str = "source"

    def __str__(self) -> str:
        more = ", …" if self.deferred > len(self.files) else ""
        names = ", ".join(map(repr, self.files))
        return f"source: {_files(self.deferred)} deferred, still being written; run again to read: {names}{more}"


AnyReport = Report | JoinReport | DeferredReport


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


_KINDS: dict[str, type[Report] | type[JoinReport]] = {"documents": Report, "joins": JoinReport}


def reports_of(stream: Stream) -> list[Report]:
    """The reports of the micro-batches that are done, in order; of long streams the last `RETAINED`."""
    return [report for report in reports_after(stream, -1) if isinstance(report, Report)]


def join_reports_of(stream: Stream) -> list[JoinReport]:
    """The reports of the stream of joins that belongs to a stream of documents."""
    found = reports_after(joins_stream(stream), -1)
    return [report for report in found if isinstance(report, JoinReport)]


def joins_stream(stream: Stream) -> Stream:
    """The settings of the stream of joins that belongs to a stream of documents."""
    return replace(stream, checkpoint=str(Path(stream.checkpoint) / "joins"))


def reports_after(stream: Stream, after: int) -> Iterator[Report | JoinReport]:
    """The reports of completed micro-batches after the given one, in order."""
    for number in sorted(done(stream.checkpoint)):
        file = _report_file(stream, number)
        if number > after and file.is_file():
            facts = json.loads(file.read_text(encoding="utf-8"))
            yield _KINDS[facts.get("query", "documents")](**facts)


def keep_report(report: Report | JoinReport, stream: Stream) -> None:
    """Write a report next to the checkpoint, and remove the oldest."""
    file = _report_file(stream, report.batch or 0)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(json.dumps(asdict(report)), encoding="utf-8")
    fresh.replace(file)
    for old in file.parent.glob("*.json"):
        if int(old.stem) < (report.batch or 0) - RETAINED:
            old.unlink(missing_ok=True)


def _report_file(stream: Stream, number: int) -> Path:
    return Path(stream.checkpoint) / "pathcast" / "reports" / f"{number}.json"
