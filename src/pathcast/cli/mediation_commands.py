"""`pathcast mediate`: mappings from publishers' schemas to a global one, derived, checked and tried out.

A schema is a file: .dtd, .xsd, .tree (indented names, as `integrate` writes them), a sample .xml, or a folder of
samples. A mapping is a TOML file to read and edit; `pathcast match --mapping FILE` matches documents through it.

Exit status: 0; 1 when `check` finds unmapped elements, or `map` maps less than half of the nodes; 2 for invalid files
and arguments.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments.shared_arguments import refuse

if TYPE_CHECKING:
    from pathcast.mediation import Mapping, Pair, SchemaTree
    from pathcast.mediation.schemas import ShortPaths

app = typer.Typer(no_args_is_help=True, help="Map publishers' schemas to the global schema that subscriptions use.")

_SCHEMA_HELP = "A .dtd, .xsd, .tree or sample .xml, or a folder of samples."
# Pairs with less confidence are for a person to check; this many of them are listed.
_SURE, _LISTED = 0.9, 15
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE instead of stdout.")]
MappingFile = Annotated[Path, typer.Argument(metavar="MAPPING", help="A mapping, as `map` writes it.")]


@app.command(
    "map", epilog="Example: pathcast mediate map global.dtd annex.xsd --pair a/hours=a/b/credits -o annex.toml"
)
def map_schema(
    global_schema: Annotated[Path, typer.Argument(metavar="GLOBAL", help=f"The global schema: {_SCHEMA_HELP}")],
    local_schema: Annotated[Path, typer.Argument(metavar="LOCAL", help="The publisher's schema, in the same formats.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the mapping. Default: the name of the local file.")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOCAL=GLOBAL",
            help="A pair of paths that correspond, with the prefixes of the report or without; may be repeated.",
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Samples of the local schema. Of an .xsd or .dtd, only what they use is mapped."
        ),
    ] = None,
    global_samples: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Samples of the global schema, likewise.")
    ] = None,
    twins: Annotated[
        str | None,
        typer.Option(
            metavar="LOCAL=GLOBAL",
            help="Two documents, or two folders of documents in the order of their names, that say the same in both "
            "schemas. Without this, twins among the samples are recognised by their values.",
        ),
    ] = None,
    synonyms: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Groups of words that mean the same, one per line.")
    ] = None,
    output: Output = None,
) -> None:
    """Derive a mapping from values in samples, names, and the places of both.

    A summary is written to stderr, with the pairs to check and the prefixes for namespaces in paths.
    """
    from pathcast.mediation import Mediator, SynonymDictionary
    from pathcast.mediation.schemas import ShortPaths, nodes_of, sample_count, with_samples

    glob, theirs = _schema(global_schema, global_samples), _schema(local_schema, samples)
    given = None
    if twins is not None:
        ours, others = _twin_documents(twins)
        given = {sample_count(theirs) + at: sample_count(glob) + at for at in range(len(ours))}
        theirs, glob = with_samples(theirs, ours), with_samples(glob, others)
    here = ShortPaths(nodes_of(theirs))
    there = ShortPaths(nodes_of(glob), like=here)
    known = dict(_known_pair(each, here, there) for each in pair or [])
    mediator = Mediator(glob)
    words = SynonymDictionary.open(*synonyms or [])
    pairs = mediator.propose(theirs, correspondence=known, twins=given, synonyms=words)
    mapping = mediator.register(name or local_schema.stem, theirs, correspondence=known, twins=given, synonyms=words)
    _write(mapping.write(), output)
    mapped = len(mapping.correspondence.keys() - mapping.unexplained.keys())
    _report(mapping, pairs, (here, there), mapped)
    if 2 * mapped < len(nodes_of(theirs)):
        raise typer.Exit(1)


def _known_pair(text: str, here: "ShortPaths", there: "ShortPaths") -> tuple[str, str]:
    """The paths of `--pair LOCAL=GLOBAL`, each in full, with prefixes, or without namespaces."""
    from pathcast.toml_files import suggestion

    places = [at for at, sign in enumerate(text) if sign == "=" and "}" not in text[at:].partition("{")[0]]
    if not places or not text[: places[0]] or not text[places[0] + 1 :]:
        refuse(f"invalid --pair {text}: expected LOCAL=GLOBAL, two paths such as catalog/hours=catalog/course/credits")
    found = []
    for given, paths, side in ((text[: places[0]], here, "local"), (text[places[0] + 1 :], there, "global")):
        path = paths.full(given)
        if path is None:
            known = paths.shorts()
            advice = (
                suggestion(given, known) or f"; its paths are {', '.join(sorted(known)[:5])}{', …' * (len(known) > 5)}"
            )
            refuse(f"invalid --pair {text}: the {side} schema has no path '{given}'{advice}")
        found.append(path)
    return found[0], found[1]


def _report(mapping: "Mapping", pairs: "list[Pair]", short: "tuple[ShortPaths, ShortPaths]", mapped: int) -> None:
    """One line that sums up, then the pairs to check and the nodes without a counterpart: some of them."""
    from pathcast.mediation.schemas import nodes_of

    here, there = short
    nodes = nodes_of(mapping.local)
    lost = [path for path in nodes if path not in mapping.correspondence or path in mapping.unexplained]
    doubtful = sorted((each for each in pairs if each.confidence < _SURE), key=lambda each: each.confidence)
    typer.echo(
        f"mapped {mapped} of {len(nodes)} nodes: {len(doubtful)} to check, {len(lost)} without a place",
        err=True,
    )
    for each in doubtful[:_LISTED]:
        pair = f"{here.short(each.local)}={there.short(each.glob)}"
        typer.echo(f"  check {each.confidence:.2f}  {pair}  ({each.why()})", err=True)
    for path in lost[:_LISTED]:
        why = " (no operator moves it to its counterpart)" if path in mapping.unexplained else ""
        typer.echo(f"  no place    {here.short(path)}{why}", err=True)
    more = max(0, len(doubtful) - _LISTED) + max(0, len(lost) - _LISTED)
    if more:
        typer.echo(f"  … and {more} more; `pathcast mediate check` lists the nodes without a place", err=True)
    for line in there.legend() if doubtful or lost else ():
        typer.echo(f"  {line}", err=True)


@app.command(epilog="Example: pathcast mediate check annex.toml")
def check(mapping: MappingFile) -> None:
    """Check a mapping, and list the parts of the local schema that have no place in the global schema."""
    read = _mapping(mapping)
    kinds = [operator.kind for operator in read.operators]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "none"
    typer.echo(f"{read.name}, version {read.version}: {len(read.local)} elements; operators: {counts}")
    missing = read.check()
    for sentence in missing:
        typer.echo(f"  {sentence}")
    if missing:
        raise typer.Exit(1)


@app.command(epilog="Example: pathcast mediate rewrite annex.toml story.xml")
def rewrite(
    mapping: MappingFile,
    document: Annotated[Path, typer.Argument(metavar="DOCUMENT", help="A document of the local schema; - for stdin.")],
    output: Output = None,
) -> None:
    """Print a document in the global schema, as subscriptions see it. Subscribers always get the original."""
    import sys

    from pathcast.documents import read
    from pathcast.errors import PathcastError
    from pathcast.mediation.mappings import item_of, to_bytes

    if str(document) != "-" and not document.is_file():
        refuse(
            f"cannot read {document}: "
            + ("this is a folder; give one document" if document.is_dir() else "no such file; check the path")
        )
    source = sys.stdin.buffer.read() if str(document) == "-" else document
    by = _mapping(mapping)
    try:
        rewritten = by.rewrite(item_of(read(source)))
    except PathcastError as error:
        refuse(f"{document}: {error}")
    _write(to_bytes(rewritten).decode() + "\n", output)


@app.command(epilog="Example: pathcast mediate integrate annex.xsd main.dtd samples/ -o global.tree")
def integrate(
    schemas: Annotated[list[Path], typer.Argument(metavar="SCHEMA…", help=_SCHEMA_HELP)], output: Output = None
) -> None:
    """Derive a global schema that has a place for every part of these schemas; it is written as indented names.

    Elements that may correspond although their names differ are reported on stderr: edit the file as needed.
    """
    from pathcast.mediation.schemas import ShortPaths, nodes_of
    from pathcast.mediation.schemas import integrate as integrated

    trees = list(map(_schema, schemas))
    found = integrated(trees)
    _write(f"{found.tree}\n", output)
    here = [ShortPaths(nodes_of(tree)) for tree in trees]
    there = ShortPaths(nodes_of(found.tree))
    merged = sum(each.merged for each in found.decisions)
    doubtful = sorted((each for each in found.decisions if not each.is_sure), key=lambda each: -each.confidence)
    typer.echo(
        f"integrated {len(trees)} schemas into {len(nodes_of(found.tree))} nodes: {merged} merged, "
        f"{len(doubtful)} decisions to check",
        err=True,
    )
    for each in doubtful[:_LISTED]:
        done = "merged" if each.merged else "apart "
        pair = f"{here[each.schema].short(each.local)}={there.short(each.glob)}"
        typer.echo(f"  {done} {each.confidence:.2f}  {schemas[each.schema]}: {pair}  ({each.why})", err=True)
    if len(doubtful) > _LISTED:
        typer.echo(f"  … and {len(doubtful) - _LISTED} more", err=True)


def _schema(file: Path, samples: Path | None = None) -> "SchemaTree":
    from pathcast.mediation import open_schema

    for each in (file, samples):
        if each is not None and not each.exists():
            refuse(f"cannot read {each}: no such file; check the path")
    return open_schema(file, samples=samples)


def _documents(folder: Path) -> list[Path]:
    from pathcast.documents import list_folder

    if not folder.exists():
        refuse(f"cannot read {folder}: no such file or folder; check the path")
    return list_folder(folder).documents if folder.is_dir() else [folder]


def _twin_documents(text: str) -> tuple[list[Path], list[Path]]:
    local, equals, there = text.partition("=")
    if not (local and equals and there):
        refuse(f"invalid --twins {text}: expected LOCAL=GLOBAL, two documents or two folders of documents")
    ours, others = _documents(Path(local)), _documents(Path(there))
    if len(ours) != len(others):
        counts = f"{local} has {len(ours)} documents, {there} has {len(others)}"
        refuse(f"invalid --twins {text}: {counts}; give as many of each")
    return ours, others


def _mapping(file: Path) -> "Mapping":
    from pathcast.mediation import Mapping

    return Mapping.open(file)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"cannot write {output}: {error.strerror}; give another --output")
