"""The subscriptions of a command: from a file, from an index, from `-e`, or from several of these.

Invalid subscriptions are reported together, each with its file, line and reason. Then the command exits with status 2,
or, with `--skip-invalid`, continues without them.
"""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from .shared_arguments import Entities, namespaces_of, printable, refuse

if TYPE_CHECKING:
    from pathcast.errors import LimitError, PatternError
    from pathcast.matching import Matcher, Subscriptions

REPORTED = 20
_ONLY_IN_XPATHS = "[]@*()='\""


class ChosenSubscriptions(NamedTuple):
    """The subscriptions and, if they come from an index, its matcher."""

    subscriptions: "Subscriptions"
    matcher: "Matcher | None" = None


def chosen_subscriptions(
    source: str | None,
    expressions: Sequence[str],
    namespaces: Sequence[str],
    *,
    skip_invalid: bool,
    entities: Entities = Entities.refuse,
) -> ChosenSubscriptions:
    """The subscriptions of a file or index, followed by the expressions."""
    from pathcast.matching import Subscriptions

    invalid: list[tuple[str, PatternError | LimitError]] = []
    if source == "":
        refuse("the name of the subscriptions is empty; give a file, or the folder of an index")
    if source is None:
        chosen = ChosenSubscriptions(Subscriptions(namespaces_of(namespaces)))
    elif Path(source).is_dir():
        chosen = _open_folder(Path(source), namespaces, entities)
    else:
        chosen, errors = _read(source, namespaces)
        invalid += ((source, error) for error in errors)
    invalid += (("-e", error) for error in chosen.subscriptions.add_many(expressions, errors="collect"))
    if invalid:
        _report(invalid, len(chosen.subscriptions), skip_invalid=skip_invalid, has_index=chosen.matcher is not None)
    if not len(chosen.subscriptions):
        typer.echo(f"note: no subscriptions in {printable(source or '-e')}", err=True)
    return chosen


# Files and folders.


def _read(source: str, namespaces: Sequence[str]) -> "tuple[ChosenSubscriptions, list[PatternError | LimitError]]":
    from pathcast.errors import PathcastError
    from pathcast.matching import Subscriptions

    file = Path(source)
    if not file.exists():  # a pipe is fine
        refuse(f"cannot read {source}: no such file{_advice(source)}")
    prefixes = namespaces_of(namespaces)
    try:
        subscriptions, errors = Subscriptions.read(file, namespaces=prefixes, errors="collect")
    except (PathcastError, ValueError) as error:
        reason = str(error)
        refuse(reason if str(file) in reason else f"{file}: {reason}")
    if errors and (getattr(errors[0], "expression", None) or "").lstrip().startswith("<"):
        refuse(
            f"{source} is an XML file, not a subscription file; give the subscription file first, then the documents"
        )
    return ChosenSubscriptions(subscriptions), errors


def _advice(source: str) -> str:
    """A hint for a file that does not exist."""
    if source == "-":
        return "; for subscriptions on stdin use /dev/stdin"
    first = Path(*Path(source).parts[:2])
    rooted = source.startswith("/") and not first.exists()
    if rooted or source.startswith("//") or any(character in source for character in _ONLY_IN_XPATHS):
        quoted = shlex.quote(source) if "'" in source else f"'{source}'"
        return f"; this looks like an XPath; use -e {quoted}"
    return "; check the path"


def _open_folder(folder: Path, namespaces: Sequence[str], entities: Entities) -> ChosenSubscriptions:
    """The matcher of an index; in a versioned folder of a pipeline, of the newest version."""
    from pathcast.errors import PathcastError
    from pathcast.matching import open_index
    from pathcast.spark.publishing import is_versioned, latest, version_folder
    from pathcast.store import MANIFEST

    if namespaces:
        refuse(
            f"--namespaces cannot be combined with the index {folder}, which has its own namespaces; omit --namespaces"
        )
    versioned = is_versioned(folder)
    if not versioned and not (folder / MANIFEST).exists():
        refuse(f"no index in the folder {folder}; give a file of subscriptions or the folder of an index")
    try:
        place = version_folder(folder, latest(folder)) if versioned else folder
        matcher = open_index(place, entities=entities.value)
    except PathcastError as error:
        refuse(f"{folder}: {error}")
    return ChosenSubscriptions(matcher.subscriptions, matcher)


# Invalid subscriptions.


def _report(
    invalid: "Sequence[tuple[str, PatternError | LimitError]]", valid: int, *, skip_invalid: bool, has_index: bool
) -> None:
    """Print the reason for each; exit unless `skip_invalid` is set and valid ones remain."""
    kind = "note" if skip_invalid else "error"
    for line in _lines(invalid[:REPORTED], has_index=has_index):
        typer.echo(f"{kind}: {line}", err=True)
    if len(invalid) > REPORTED:
        typer.echo(f"{kind}: and {len(invalid) - REPORTED:,} more", err=True)
    count = valid + len(invalid)
    heading = f"{len(invalid):,} of {count:,} subscription{'s' * (count != 1)} {_are(len(invalid))} invalid"
    if not valid and len(invalid) == 1:
        raise typer.Exit(2)
    if not valid:
        refuse(f"{heading}; no valid subscription remains; fix at least one")
    if not skip_invalid:
        them = "it" if len(invalid) == 1 else "them"
        refuse(f"{heading}; fix {them}, or skip {them} with --skip-invalid")
    typer.echo(f"note: {heading} and skipped", err=True)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _lines(invalid: "Iterable[tuple[str, PatternError | LimitError]]", *, has_index: bool) -> Iterable[str]:
    """One error per subscription; a list of supported syntax appears only once."""
    from pathcast.errors import PatternError

    said = set()
    for source, error in invalid:
        if isinstance(error, PatternError):
            if error.offending.endswith(":") and has_index:
                error.supported = "prefixes that the index declares, or Q{http://…}name"
            elif error.offending.endswith(":"):
                prefix = error.offending[:-1]
                error.supported = f"prefixes given with --namespaces {prefix}=http://…, or --namespaces ignore"
            if error.supported in said:
                error.supported = None
            said.add(error.supported)
        yield f"{source}: {error}"
