"""Functions that turn data into code (pickle, `eval` and the like) are used only in listed places, with a reason."""

import ast
from pathlib import Path

import pathcast

PACKAGE = Path(pathcast.__file__).parent
MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "jsonpickle", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}
WORDS = {*MODULES, *(f"{call}(" for call in CALLS), "pickle", ".load("}
ALLOWED = {
    (
        "objects_sent_to_workers.py",
        "pickle",
    ): "travels inside a function that Spark itself pickles; never read from disk",
    ("numba_compilation.py", "eval"): "the signature of a kernel, a literal in our source",
}


def found_in(source):
    """The functions in a source that turn data into code."""
    if not any(word in source for word in WORDS):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            yield from names & MODULES
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0], *(alias.name for alias in node.names)}
            yield from names & MODULES if not node.level else ()
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func.id
            given = {word.arg: word.value for word in node.keywords}
            if "allow_pickle" in given and ast.unparse(given["allow_pickle"]) != "False":
                yield "allow_pickle"
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                yield from () if "allow_pickle" in given else ("np.load without allow_pickle",)


def test_data_becomes_code_nowhere_else():
    found = {(path.name, each) for path in PACKAGE.rglob("*.py") for each in found_in(path.read_text(encoding="utf-8"))}
    assert found == set(ALLOWED)


def test_the_test_sees_what_it_looks_for():
    source = (
        "import pickle\nfrom marshal import loads\nimport cloudpickle.x\nfrom pyspark import cloudpickle\neval('1')\n"
        "np.load('x')\nnp.load('x', allow_pickle=True)\nnp.load('x', allow_pickle=False)\nre.compile('x')\n"
        "from .pickle import x\n"
    )
    assert sorted(found_in(source)) == [
        "allow_pickle", "cloudpickle", "cloudpickle", "eval", "marshal", "np.load without allow_pickle", "pickle"
    ]  # fmt: skip
