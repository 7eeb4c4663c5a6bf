"""Whether an expression can see more than element arrays hold: comments, processing instructions, prefixes, IDs."""

from itertools import zip_longest

from pathcast.patterns.xpath import ANYWHERE, Call, Expression, Path, parts


def needed_markup(expression: Expression) -> tuple[bool, bool]:
    """Whether it can see comments, processing instructions, prefixes or IDs, and whether it can see namespace nodes."""
    markup = namespaces = False
    for part in parts(expression):
        if isinstance(part, Call):
            markup |= part.function in ("name", "id")
        elif isinstance(part, Path):
            for step, after in zip_longest(part.steps, part.steps[1:]):
                namespaces |= step.axis == "namespace"
                markup |= step.test.kind in ("comment", "processing-instruction")
                childless = step.axis in ("self", "parent", "ancestor", "attribute")
                passing = after is not None and step == ANYWHERE and after.axis in ("child", "attribute", "descendant")
                markup |= step.test.kind == "node" and not childless and not passing
    return markup or namespaces, namespaces
