"""The options of `pathcast generate`, each with its bounds and its help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Text(StrEnum):
    """What stands in texts and free attributes."""

    integers = "integers"
    words = "words"


class Operator(StrEnum):
    """How a value predicate compares."""

    equal = "="
    at_most = "<="
    at_least = ">="


class Target(StrEnum):
    """What a value predicate looks at."""

    attribute = "attribute"
    text = "text"


Dtd = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="A DTD; by default the news schema that comes with Pathcast."
    ),
]
Root = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The root element, where the DTD leaves a choice.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="Same seed, same output. Share it so that predicates fit the documents.")]
Largest = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Values are 1..max, with max drawn per attribute from 1..LARGEST.")
]
Style = Annotated[Text, typer.Option("--text", help="Values as integers, or readable words as in news.")]
Force = Annotated[bool, typer.Option("--force", help="Write although something is there; same names are replaced.")]

Folder = Annotated[Path, typer.Argument(metavar="OUTPUT_DIR", help="A new or empty folder.", show_default=False)]
Documents = Annotated[int, typer.Option("--count", "-n", min=0, help="How many documents.")]
MaxLevels = Annotated[int, typer.Option(min=1, help="Levels below the root down to which optional parts appear.")]
MaxRepeats = Annotated[int, typer.Option(min=1, help="Most repetitions of a part that may repeat.")]
AttributeProbability = Annotated[
    float | None, typer.Option(min=0, max=1, help="Of optional attributes.", show_default="drawn per attribute")
]
MaxElements = Annotated[
    int, typer.Option(min=1, help="A document beyond it is finished as shortly as its schema allows.")
]
Start = Annotated[int, typer.Option(min=0, help="Number before the first document, to make a collection in parts.")]

File = Annotated[
    Path,
    typer.Argument(
        metavar="OUTPUT_FILE",
        help="A name that ends in .txt (one XPath a line), .csv, .parquet, .txt.gz or .csv.gz.",
        show_default=False,
    ),
]
Subscriptions = Annotated[int, typer.Option("--count", "-n", min=0, help="How many subscriptions.")]
MaxDepth = Annotated[int, typer.Option(min=1, help="Levels of the schema that a path goes down.")]
MinDepth = Annotated[
    int | None, typer.Option(min=1, help="Draw each path's depth from here to the maximum.", show_default=False)
]
Wildcard = Annotated[float, typer.Option(min=0, max=1, help="Probability that a step is *.")]
Descendant = Annotated[float, typer.Option(min=0, max=1, help="Probability that a // starts at a step.")]
Skew = Annotated[float, typer.Option(min=0, help="Zipf's exponent for the choice of a child; 0 is uniform.")]
Predicates = Annotated[int, typer.Option(min=0, help="Value predicates per subscription, at random steps.")]
PredicateProbability = Annotated[
    float, typer.Option(min=0, max=1, help="Instead: of a predicate for each attribute and text of a step.")
]
Operators = Annotated[list[Operator] | None, typer.Option(help="May be repeated.", show_default="all")]
Targets = Annotated[list[Target] | None, typer.Option(help="May be repeated.", show_default="both")]
Nested = Annotated[int, typer.Option(min=0, help="Nested paths per subscription.")]
NestedProbability = Annotated[float, typer.Option(min=0, max=1, help="Instead: of a nested path at each step.")]
Distinct = Annotated[bool, typer.Option("--distinct", help="No two alike.")]
MatchRate = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Mean share of documents that one matches, 0.01 for 1 %.", show_default=False),
]
Sample = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Documents (*.xml, *.xml.gz) to measure the match rate on; by default 200 generated ones.",
    ),
]
Readers = Annotated[int, typer.Option(min=0, help="Give each to one of so many subscribers, reader-001 and so on.")]
