"""The options of `pathcast generate`, with their bounds and help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Text(StrEnum):
    """The kind of values in texts and free attributes."""

    integers = "integers"
    words = "words"


class Operator(StrEnum):
    """The comparison of a value predicate."""

    equal = "="
    at_most = "<="
    at_least = ">="


class Target(StrEnum):
    """The value that a predicate tests."""

    attribute = "attribute"
    text = "text"


Dtd = Annotated[
    Path | None,
    typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A DTD. Default: the news schema of Pathcast."),
]
Root = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The root element, if the DTD allows several.", show_default=False),
]
Seed = Annotated[
    int, typer.Option(help="The same seed gives the same output. Use the same for documents and subscriptions.")
]
Largest = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Values are 1 to max; max is drawn per attribute from 1 to LARGEST.")
]
Style = Annotated[Text, typer.Option("--text", help="Values are integers, or words as in news.")]
Force = Annotated[bool, typer.Option("--force", help="Write to an existing output, and replace its files.")]

Folder = Annotated[Path, typer.Argument(metavar="OUTPUT_DIR", help="A new or empty folder.", show_default=False)]
Documents = Annotated[int, typer.Option("--count", "-n", min=0, help="Number of documents.")]
MaxLevels = Annotated[int, typer.Option(min=1, help="Optional parts appear down to this level below the root.")]
MaxRepeats = Annotated[int, typer.Option(min=1, help="Maximum number of repetitions of a repeatable part.")]
AttributeProbability = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Probability of optional attributes.", show_default="drawn per attribute"),
]
MaxElements = Annotated[
    int, typer.Option(min=1, help="Maximum number of elements. A larger document ends as early as its schema allows.")
]
Start = Annotated[int, typer.Option(min=0, help="Number of documents to skip, to generate a collection in parts.")]

File = Annotated[
    Path,
    typer.Argument(
        metavar="OUTPUT_FILE",
        help="A file with the suffix .txt (one XPath per line), .csv, .parquet, .txt.gz or .csv.gz.",
        show_default=False,
    ),
]
Subscriptions = Annotated[int, typer.Option("--count", "-n", min=0, help="Number of subscriptions.")]
MaxDepth = Annotated[int, typer.Option(min=1, help="Maximum depth of a path, in levels of the schema.")]
MinDepth = Annotated[
    int | None,
    typer.Option(min=1, help="Draw the depth of each path from this value to the maximum.", show_default=False),
]
Wildcard = Annotated[float, typer.Option(min=0, max=1, help="Probability that a step is *.")]
Descendant = Annotated[float, typer.Option(min=0, max=1, help="Probability that a step starts with //.")]
Skew = Annotated[float, typer.Option(min=0, help="Zipf's exponent for the choice of a child; 0 is uniform.")]
Predicates = Annotated[int, typer.Option(min=0, help="Value predicates per subscription, at random steps.")]
PredicateProbability = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Instead of a number: probability of a predicate per attribute and text of a step."
    ),
]
Operators = Annotated[
    list[Operator] | None, typer.Option(help="Operators of value predicates; may be repeated.", show_default="all")
]
Targets = Annotated[
    list[Target] | None, typer.Option(help="What value predicates test; may be repeated.", show_default="both")
]
Nested = Annotated[int, typer.Option(min=0, help="Nested paths per subscription.")]
NestedProbability = Annotated[
    float, typer.Option(min=0, max=1, help="Instead of a number: probability of a nested path per step.")
]
Distinct = Annotated[bool, typer.Option("--distinct", help="Write no subscription twice.")]
MatchRate = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="Mean share of documents that a subscription matches; 0.01 is 1 %.", show_default=False
    ),
]
Sample = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Folder of documents (*.xml, *.xml.gz) to measure the match rate. Default: 200 generated documents.",
    ),
]
Readers = Annotated[
    int, typer.Option(min=0, help="Assign subscriptions to this many subscribers: reader-001, reader-002, …")
]
