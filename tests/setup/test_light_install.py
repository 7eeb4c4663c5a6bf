"""`pip install .` is enough for matching; every other part names its extra if a package is missing."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LIGHT = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
EXTRAS = {
    canonicalize_name(wanted.name)
    for name, group in PROJECT["optional-dependencies"].items()
    if name != "dev"
    for wanted in map(Requirement, group)
    if wanted.name != "pathcast"
}
HIDDEN = f"""
import sys
for name in {sorted(EXTRAS - LIGHT)!r}:
    sys.modules[name] = None
"""
MATCHING = """
import pathcast
subscriptions = pathcast.Subscriptions()
subscriptions.add("/news[@lang = 'en']//title", subscriber="ada")
matcher = subscriptions.compile()
print(matcher.match(b"<news lang='en'><head><title/></head></news>").subscribers)
print(list(matcher.match_many(["<a/>"]))[0].ids.tolist(), matcher.explain(b"<a/>", 1).matches)
matcher.save(sys.argv[1])
print(pathcast.open_index(sys.argv[1]).match("<news lang='en'><title/></news>").ids.tolist())
from pathcast.cli.app import app
"""


def answer(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", HIDDEN + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_matching_needs_no_extra(tmp_path: Path) -> None:
    assert answer(MATCHING, str(tmp_path / "index")).splitlines() == ["['ada']", "[] False", "[1]"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "package", "extra"),
    [
        ("pathcast.Subscriptions().read(sys.argv[1])", "pyarrow", "parquet"),
        ("from pathcast.workloads import news_schema; news_schema()", "lxml", "generate"),
        (
            "from pathcast.mediation.schemas.schema_sources import tree_of_xsd; tree_of_xsd(b'<x/>')",
            "xmlschema",
            "mediation",
        ),
        ("import pathcast.roxsum", "pyroaring", "roxsum"),
        ("from pathcast.transmission import Topology, to_graph; to_graph(Topology.star(3))", "networkx", "routing"),
        ("from pathcast.joins.query import sql_parser", "sqlglot", "joins"),
        ("from pathcast.spark import session", "pyspark", "spark"),
        ("pathcast.connect('http://127.0.0.1:1')", "httpx", "client"),
    ],
)
def test_the_first_call_that_needs_a_missing_package_names_its_extra(
    program: str, package: str, extra: str, tmp_path: Path
) -> None:
    file = tmp_path / "subscriptions.parquet"
    file.write_bytes(b"PAR1")
    caught = f"import pathcast\ntry:\n    {program}\nexcept pathcast.PathcastError as error:\n    print(error)"
    assert answer(caught, str(file)).strip() == f'{package} is not installed; run: pip install "pathcast[{extra}]"'
