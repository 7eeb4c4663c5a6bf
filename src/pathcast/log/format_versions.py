"""Formats of files and records: what to do about one that this version of Pathcast does not read.

A format changes only when an older version would misread what a newer one writes; fields that an older version may
ignore are added without that. Nothing is converted in place: an export by the version that wrote a log, imported by
the one that shall read it, leaves the original as it is.
"""


def other_format(what: str, found: int, read: int) -> str:
    """The reason why `what`, in format `found`, is not read, and what to do."""
    if found > read:
        advice = "a later version wrote it; update Pathcast, or restore the log from a backup"
    else:
        advice = (
            "an earlier version wrote it; run `pathcast log export` with that version, and `pathcast log "
            "import` with this version"
        )
    return f"{what} has format {found}, but this version of Pathcast reads format {read}: {advice}"
