"""Check prose for habits that readers stumble over: python scripts/check_language.py [PATH …].

Looks at comments, docstrings and messages of Python files, and at Markdown outside code. Reports file, line, the words
and what to write instead; exits with 1 if it reports anything. To add a habit, add it to `HABITS`.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# Files that quote habits.
_SAMPLES = ("check_language.py", "test_check_language.py")
FOLDERS = ("src", "lab", "tests", "scripts", "docs")
_UNITS = r"(?:µs|ms|ns|s|seconds?|bytes?|[kKMG]i?B|times|entr(?:y|ies)|rows?|look-ups?|calls?)"
_THINGS = r"(?:document|element|pattern|key|batch|process|thread|subscription|message|match|value)s?"

# What to look for, and what to write instead.
HABITS = {
    r"so many": "the number, or 'this many'",
    r"(?:is|are|was|were|be|been|being|gets?) told": "who reports what to whom",
    r"tells? (?:what|that|how|which|whether|more|the rest|where|why|when|it)": "'shows', 'reports', 'returns'",
    r"(?<!\.)mend(?:s|ed|ing)?": "'fix'",
    r"as such": "nothing",
    r"what is no": "'a value that is not'",
    r"(?:or )?there can't be": "what is wrong, as a fact",
    r"that there (?:is|are) not": "'unknown …'",
    r"whoever": "the actor: 'the caller', 'the thread that'",
    r"anew": "'again'",
    r"lately": "'recently' or the count",
    r"tak(?:e|es|en|ing) up": "'add', 'index', 'register'",
    r"took up": "'added', 'indexed', 'registered'",
    r"(?:go|goes|going|went|gone) on(?! to\b)": "'continue'",
    r"for good": "'permanently'",
    r"now and then": "'periodically'",
    r"(?:say|says|said) nothing": "'omit'",
    r"is said": "'is documented', 'is reported'",
    r"(?<!['\"=`])(?<!connection )(?<!\| )refus(?:e|es|ed|ing|al|als)(?!['\"])": "'reject'",
    rf"{_UNITS} an? {_THINGS}": "'per'",
    r"(?:one|once|twice) an? (?:document|element|batch|process|thread|key|file|machine)": "'per'",
    r"(?<=[,;] )else": "'otherwise'",
    r"rooms?(?= (?:of|imports?|below|above|has|have|holds?)\b)": "'package'",
    r"an? (?:lot|bit) of": "the number",
    r"known are": "'supported: …', 'use one of …'",
    r"(?:this|the same|an? (?:later|earlier)) Pathcast": "'version of Pathcast'",
    r"at most (?:\{[^{}]*\}|[\d,]+) allowed": "'are allowed'",
    r"the most allowed": "'the maximum'",
    r"paths? of entries": "'entry path'",
    r"(?:give|write) one such as": "the noun: 'give a path such as'",
    r"never added, or (?:already )?removed": "'was never added or has been removed'",
    r"restore a backup(?! of\b)": "'restore the … from a backup'",
}
_ANY = "|".join(rf"(?P<h{number}>(?<!\w){habit}(?!\w))" for number, habit in enumerate(HABITS))
_HABIT = re.compile(_ANY, re.IGNORECASE)
_ADVICE = list(HABITS.values())
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")
_STRING = re.compile(r"""^[a-zA-Z]*('''|\"\"\"|'|\")(.*)\1$""", re.DOTALL)


def prose_of_python(text: str) -> Iterator[tuple[int, str]]:
    """The comments and strings of a file, each with its first line; a single word is a value, not prose."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        elif token.type == tokenize.STRING and (found := _STRING.match(token.string)) and " " in found[2]:
            yield token.start[0], found[2]


def prose_of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside fenced and indented code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def habits_in(prose: str) -> Iterator[tuple[int, str, str]]:
    """Line (from 0), words and advice for each habit in a piece of prose."""
    text = _CODE.sub(lambda found: "`" + "x" * (len(found[0]) - 2) + "`", prose)
    for found in _HABIT.finditer(text):
        yield text.count("\n", 0, found.start()), found[0], _ADVICE[int((found.lastgroup or "h0")[1:])]


def report(file: Path) -> Iterator[str]:
    """A line for each habit in a file."""
    text = file.read_text(encoding="utf-8")
    pieces = prose_of_python(text) if file.suffix == ".py" else prose_of_markdown(text)
    for first, prose in pieces:
        for line, words, advice in habits_in(prose):
            yield f"{file}:{first + line}: {words.strip()!r}: write {advice}"


def files(paths: list[Path]) -> Iterator[Path]:
    """The Python and Markdown files below some paths, or of the project; generated results and ourselves left out."""
    for path in paths or [*(PROJECT / name for name in FOLDERS), *PROJECT.glob("*.md")]:
        found = [path] if path.is_file() else sorted([*path.rglob("*.py"), *path.rglob("*.md")])
        for file in found:
            if file.name not in _SAMPLES and "site-packages" not in file.parts:
                yield file


def main(paths: list[str]) -> int:
    """Print what was found; the exit status."""
    lines = [line for file in files([Path(path) for path in paths]) for line in report(file)]
    for line in lines:
        print(line)
    if lines:
        print(f"{len(lines)} places to reword")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
