"""The examples in docstrings of public names run and give the output that they show."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import pathcast

# `spark` has its examples in its README, with a Spark to run them; engines are used by name; the others are for work on
# Pathcast.
WITHOUT = {"cli", "kernels", "literature", "spark"}
ROOMS = [room.name for room in pkgutil.iter_modules(pathcast.__path__) if room.ispkg and room.name not in WITHOUT]


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_a_room_are_true(room):
    module = importlib.import_module(f"pathcast.{room}")
    shown = 0
    for name in module.__all__:
        if not getattr(getattr(module, name), "__module__", "").startswith("pathcast"):
            continue  # a type of arrays
        for test in doctest.DocTestFinder(recurse=False).find(
            getattr(module, name), name, globs={"pathcast": pathcast}
        ):
            found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
            shown += found.attempted
            assert not found.failed, f"{room}.{name}: see above"
    assert shown


@pytest.mark.slow
def test_a_room_is_there_under_its_name_without_being_imported():
    command = "import pathcast; print(pathcast.matching.engines()[0], pathcast.documents.read('<a/>').string_value(0))"
    assert subprocess.check_output([sys.executable, "-c", command], text=True) == "automaton \n"


def test_what_users_begin_with_has_an_example():
    kinds = [getattr(pathcast, name) for name in pathcast.__all__]
    made = [
        one for one in kinds if not inspect.ismodule(one) and not (inspect.isclass(one) and issubclass(one, Exception))
    ]
    assert [one.__name__ for one in made if ">>>" not in (one.__doc__ or "")] == ["Subscription"]
