"""Random XPath expressions, as Hypothesis strategies: inside the fragment, and near it."""

from random import Random

from hypothesis import strategies as st

names = st.sampled_from(["a", "b", "and", "or", "not", "text", "a-b.c", "é", "Q", "p:a", "div"])
literals = st.one_of(
    st.integers(-50, 50).map(str),
    st.sampled_from(["0.10", ".5", "7.", "1000000000000000000000", "'x'", '"it\'s"', "'1e3'", "' 5 '", "''", "'<&\"'"]),
)


@st.composite
def paths(draw: st.DrawFn, depth: int = 2, *, top: bool = False) -> str:
    text = draw(st.sampled_from(["/", "//", ""] if top else ["", ".//", "//", "/", "./"]))
    steps = draw(st.integers(1, 3))
    for index in range(steps):
        text += draw(st.sampled_from(["/", "//"])) if index else ""
        last = index == steps - 1
        kind = draw(st.integers(0, 9))
        if last and kind == 0:
            text += "@" + draw(names)
        elif last and kind == 1:
            text += "text()"
        else:
            text += draw(st.one_of(names, st.just("*")))
            for _ in range(draw(st.integers(0, 2)) if depth else 0):
                text += f"[{draw(conditions(depth - 1))}]"
    return text


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> str:
    inner = max(0, depth - 1)
    path = draw(st.one_of(paths(depth), st.just(".")))
    match draw(st.integers(0, 6)) if depth else draw(st.integers(0, 3)):
        case 0:
            return path
        case 1:
            return f"{path} {draw(st.sampled_from(['=', '!=', '<', '<=', '>', '>=']))} {draw(literals)}"
        case 2:
            return f"{draw(literals)} {draw(st.sampled_from(['=', '!=', '<', '<=', '>', '>=']))} {path}"
        case 3:
            function, text = draw(st.sampled_from(["contains", "starts-with"])), draw(st.sampled_from(["", "x", "it"]))
            return f"{function}({path}, {text!r})"
        case 4:
            return f"not({draw(conditions(inner))})"
        case 5:
            return f"{draw(conditions(inner))} and ({draw(conditions(inner))})"
        case _:
            return f"{draw(conditions(inner))} or {draw(conditions(inner))}"


plain = st.lists(
    st.tuples(st.sampled_from(["/", "//"]), st.sampled_from(["a", "b", "p:a", "*"])), min_size=1, max_size=6
).map(lambda steps: "".join(axis + test for axis, test in steps))

# Pieces that a typing error may add, and pieces with more than one reading.
SLIPS = [
    *"/@*.[]()='\"<!5a \t",
    "//",
    "..",
    "::",
    ":",
    " and ",
    " or ",
    "or",
    "and",
    "not(",
    "text()",
    "Q{",
    "-",
    "é",
    "\ud800",
]


def near_miss(text: str, random: Random) -> str:
    """An expression with a few pieces removed, doubled or inserted: mostly invalid, sometimes valid."""
    for _ in range(random.randint(1, 3)):
        begin = random.randint(0, len(text))
        end = min(len(text), begin + random.randint(0, 3))
        instead = random.choice((random.choice(SLIPS), "", 2 * text[begin:end]))
        text = text[:begin] + instead + text[end:]
    return text
