"""`pathcast mediate`: mappings from publishers' schemas to a global one, derived, checked and tried out.

A schema is a file: .dtd, .xsd, .tree (indented names, as `integrate` writes them), a sample .xml, or a folder of
samples. A mapping is a TOML file to read and edit; `pathcast match --mapping FILE` matches documents through it.

Exit status: 0; 1 when `check` finds unmapped elements; 2 for invalid files and arguments.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments.shared_arguments import refuse

if TYPE_CHECKING:
    from pathcast.mediation import Mapping, SchemaTree

app = typer.Typer(no_args_is_help=True, help="Map publishers' schemas to the global schema that subscriptions use.")

_SCHEMA_HELP = "A .dtd, .xsd, .tree or sample .xml, or a folder of samples."
# Pairs with less confidence are reported.
_DOUBTFUL = 0.5
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
        typer.Option(metavar="LOCAL=GLOBAL", help="A pair of paths that correspond; may be repeated."),
    ] = None,
    output: Output = None,
) -> None:
    """Derive a mapping from values in samples, names, and the places of both.

    Unmapped elements, and pairs with little evidence, are reported on stderr.
    """
    from pathcast.mediation import Mediator
    from pathcast.mediation.schemas import parent_of
    from pathcast.toml_files import suggestion

    known: dict[str, str] = {}
    for each in pair or []:
        local, equals, there = each.partition("=")
        if not (local and equals and there):
            refuse(
                f"invalid --pair {each}: expected LOCAL=GLOBAL, two paths such as catalog/hours=catalog/course/credits"
            )
        known[local] = there
    glob, theirs = _schema(global_schema), _schema(local_schema)
    for local, there in known.items():
        for path, tree, side in ((local, theirs, "local"), (there, glob, "global")):
            if path not in (paths := _paths(tree)):
                advice = (
                    suggestion(path, paths)
                    or f"; its paths are {', '.join(sorted(paths)[:5])}{', …' * (len(paths) > 5)}"
                )
                refuse(f"invalid --pair {local}={there}: the {side} schema has no path '{path}'{advice}")
    mediator = Mediator(glob)
    pairs = mediator.propose(theirs, correspondence=known)
    mapping = mediator.register(
        name or local_schema.stem, theirs, correspondence={each.local: each.glob for each in pairs}
    )
    _write(mapping.write(), output)
    for sentence in mapping.check():
        typer.echo(f"note: {sentence}", err=True)
    for found in pairs:
        if found.confidence < _DOUBTFUL and parent_of(found.local):
            confirm = f"check this pair, and confirm it with --pair {found.local}={found.glob}"
            evidence = f"with confidence {found.confidence:.2f} ({found.why()})"
            typer.echo(f"note: '{found.local}' was mapped to '{found.glob}' {evidence}; {confirm}", err=True)


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
    from pathcast.mediation.schemas import integrate

    found = integrate(map(_schema, schemas))
    _write(f"{found.tree}\n", output)
    for each in found.decisions:
        if not each.is_sure:
            done = "was merged with" if each.merged else "was kept separate, but may be the same as"
            typer.echo(f"note: {schemas[each.schema]}: '{each.local}' {done} '{each.glob}' ({each.why})", err=True)


def _schema(file: Path) -> "SchemaTree":
    from pathcast.mediation import open_schema

    if not file.exists():
        refuse(f"cannot read {file}: no such file; check the path")
    return open_schema(file)


def _paths(tree: "SchemaTree") -> set[str]:
    from pathcast.mediation.schemas import nodes_of

    return set(nodes_of(tree))


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
