"""Small documents full of repeated tags, and patterns about them, drawn at random."""

from random import Random

TAGS = "abc"


def random_element(random: Random, depth: int = 4) -> str:
    """An element as text; `u` is a tag that no pattern has."""
    tag = random.choice(TAGS + "u")
    written = "".join(f' {name}="{random.choice("123x")}"' for name in "kl" if random.random() < 0.4)
    below = [random_element(random, depth - 1) for _ in range(random.randint(0, 3))] if depth else []
    return f"<{tag}{written}>{''.join(below)}</{tag}>"


def _filter(random: Random) -> str:
    operator = random.choice(["", " = ", " != ", " >= ", " <= ", " > ", " < "])
    values = ["1", "2", "3", "2.5", "'2'", *(["'x'"] if operator in (" = ", " != ") else [])]
    return f"[@{random.choice('kl')}{operator}{random.choice(values) if operator else ''}]"


def random_path(random: Random, most: int = 5, *, filtered: bool = False) -> str:
    """A path, with filters or without."""
    text = ""
    for _ in range(random.randint(1, most)):
        test = random.choice(TAGS + "*")
        text += random.choice(["/", "/", "//"]) + test
        if filtered and random.random() < (0.2 if test == "*" else 0.4):
            text += _filter(random)
    return text


def random_twig(random: Random, depth: int = 2) -> str:
    """A path with branches, which may have branches of their own."""
    text = random_path(random, 3, filtered=random.random() < 0.3)
    if depth:
        for _ in range(random.randint(0, 2)):
            text += f"[.{random_twig(random, depth - 1)}]"
        if random.random() < 0.5:
            text += random_twig(random, depth - 1)
    return text


def random_pattern(random: Random) -> str:
    """A path, a path with filters, or a twig."""
    kind = random.randrange(3)
    return random_twig(random) if kind == 2 else random_path(random, filtered=kind == 1)
