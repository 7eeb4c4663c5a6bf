"""RoXSum: the size of messages, compared with the documents compressed one by one and together."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, every, experiment, judged

from .roxsum_workloads import COLLECTIONS, PAPER, PROSE, collection

MESSAGE, TREE, DOCUMENTS = "RoXSum message", "RoXSum tree and extents", "documents"
EACH, WHOLE = "each document", "whole batch"
# The number of documents that are packed one by one before the size is extrapolated.
_SAMPLE = 1_000


@dataclass(frozen=True)
class Size:
    """`documents` are the sizes of batches; `levels` are zstd's (gzip takes 9 for anything above)."""

    documents: tuple[int, ...] = (100, 1_000, 10_000)
    levels: tuple[int, ...] = (3, 19)
    collections: tuple[str, ...] = (*COLLECTIONS, PROSE)


def _at_each(
    wanted: Callable[[Rows, str, int, int], float],
    shown: str,
    *,
    least: int = 1,
    names: tuple[str, ...] = COLLECTIONS,
    bound: float,
    is_most: bool = False,
    mostly: bool = False,
) -> Callable[[Rows], Judgement]:
    """A judge that looks at collections, batch sizes from `least` on and levels: all must be at least `bound`, or at
    most where `is_most`; with `mostly`, more than half of them.
    """

    def judge(rows: Rows) -> Judgement:
        found = {
            f"for {size:,} documents at level {level} ({name})": wanted(rows, str(name), size, level)
            for name in rows.distinct("collection")
            for size in sorted({int(row["documents"]) for row in rows if isinstance(row["documents"], int)})
            for level in sorted({int(row["level"]) for row in rows if isinstance(row["level"], int) and row["level"]})
            if size >= least and name in names
        }
        if not found:
            return judged(None, f"no batch of {least:,} documents or more")
        judgement = every(found, shown, most=bound) if is_most else every(found, shown, least=bound)
        if not mostly:
            return judgement
        enough = sum(value <= bound if is_most else value >= bound for value in found.values())
        return judged(2 * enough > len(found), f"{enough} of {len(found)} cases; {judgement.measured}")

    return judge


def _tree(rows: Rows, name: str, size: int, _: int) -> float:
    return rows.number("share", collection=name, documents=size, what=TREE)


def _smaller(rows: Rows, name: str, size: int, level: int) -> float:
    return 1 / rows.number("share", collection=name, documents=size, what=MESSAGE, level=level)


def _below_zstd(rows: Rows, name: str, size: int, level: int) -> float:
    ours = rows.number("bytes", collection=name, documents=size, what=MESSAGE, level=level)
    return rows.number("bytes", collection=name, documents=size, what=f"zstd, {WHOLE}", level=level) / ours


@experiment(
    "roxsum-size",
    title="RoXSum: size of messages",
    small=Size(),
    paper=Size(documents=(100, 1_000, 10_000, 100_000)),
    claims=(
        Claim(
            "the tree is usually less than 5 % of the documents",
            PAPER,
            _at_each(_tree, "{:.1%} of the documents", bound=0.05, is_most=True, mostly=True),
            "5 %",
        ),
        Claim(
            "the tree with the content is at least 10 times smaller than the documents",
            PAPER,
            _at_each(_smaller, "{:.1f} times", bound=10),
            "10 times",
            "In a small batch of documents of many schemas hardly any two documents share label paths.",
        ),
        Claim(
            "a message of 10,000 documents or more is at least 10 times smaller than the documents",
            "target",
            _at_each(_smaller, "{:.1f} times", bound=10, least=10_000),
            "10 times",
        ),
        Claim(
            "a message of 10,000 documents or more is smaller than the whole batch in zstd at the same level",
            "target",
            _at_each(_below_zstd, "{:.1f} times", bound=1, least=10_000),
            "smaller",
        ),
        Claim(
            "a message of prose, whose sentences hardly repeat, is smaller than the whole batch in zstd",
            "target",
            _at_each(_below_zstd, "{:.1f} times", bound=1, least=1_000, names=(PROSE,)),
            "smaller",
        ),
    ),
    plots=tuple(
        Plot(
            name=f"level-{level}",
            title=f"Bytes per document, level {level}",
            y="bytes_each",
            y_label="bytes per document",
            series="what",
            x="documents",
            x_label="documents in a batch",
            ours=(MESSAGE,),
            panel="collection",
            log="xy",
            only=lambda row, level=level: row["level"] in {level, 0},  # type: ignore[misc]
        )
        for level in (3, 19)
    ),
    show={
        "collection": "collection",
        "documents": "documents",
        "what": "what",
        "level": "level",
        "bytes_each": "bytes per document",
        "share": "of the documents' size",
        "nodes": "label paths",
        "raw": "travel raw",
    },
)
def roxsum_size(run: Run, parameters: Size) -> Iterator[Row]:
    """Batches of documents are encoded, and the same documents packed with gzip and zstd, each alone and all together.

    The tree is counted with its names and extents, not packed. Every message is decoded and must give back the
    documents byte for byte. gzip has no level above 9 and takes that. Documents packed one by one are a sample of
    1,000 where there are more.
    """
    from pathcast.roxsum import MessageLimits, RoXSum
    from pathcast.roxsum.token_table_kernels import RAW_TEXT

    limits = MessageLimits(bytes=1 << 30)
    for name in parameters.collections:
        everything = collection(name, max(parameters.documents), run.seed)
        for size in run.steps(f"packing {name}", parameters.documents):
            documents = everything[:size]
            total = sum(map(len, documents))
            batch = RoXSum.build(documents)
            contents = batch.contents
            raw = int((contents.tokens[contents.token_begin[batch.rows]] <= RAW_TEXT).sum())
            sizes: list[tuple[str, int, float]] = [(DOCUMENTS, 0, total), (TREE, 0, batch.summary_size)]
            for level in parameters.levels:
                message = batch.encode(level=level)
                run.check(
                    "every document comes back byte for byte",
                    RoXSum.decode(message, limits=limits).documents() == documents,
                )
                sizes.append((MESSAGE, level, len(message)))
                sizes += _packed(documents, level)
            for what, level, length in sizes:
                yield {
                    "collection": name,
                    "documents": size,
                    "what": what,
                    "level": level,
                    "bytes": length,
                    "bytes_each": length / size,
                    "share": length / total,
                    "nodes": len(batch.nodes),
                    "raw": raw,
                }


def _packed(documents: list[bytes], level: int) -> Iterator[tuple[str, int, float]]:
    """The sizes of the documents compressed with gzip and zstd."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=level)
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda data: gzip.compress(data, compresslevel=min(level, 9), mtime=0),
        "zstd": compressor.compress,
    }
    sample = documents[:_SAMPLE]
    whole = b"".join(documents)
    for packer, pack in packers.items():
        each = sum(len(pack(document)) for document in sample)
        yield f"{packer}, {EACH}", level, each * len(documents) / len(sample)
        yield f"{packer}, {WHOLE}", level, len(pack(whole))
