"""Paths with prefixes instead of namespaces."""

from hypothesis import given
from hypothesis import strategies as st

from pathcast.mediation.schemas import ShortPaths

UBL = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"


def test_prefixes_come_from_the_end_of_a_namespace() -> None:
    paths = ShortPaths([f"{{{UBL}}}ID", "{http://www.w3.org/2005/Atom}feed/{urn:x:Cold-Blue-Car}b/@c", "{1}d"])
    assert paths.shorts() == ["cbc:ID", "atom:feed/cbc2:b/@c", "n:d"]
    assert paths.legend()[0] == f"cbc = {UBL}"


def test_a_prefix_means_one_namespace_in_both_schemas() -> None:
    ours = ShortPaths(["{urn:first}r"])
    theirs = ShortPaths(["{urn:x:first}r"], like=ours)
    assert (ours.shorts(), theirs.shorts()) == (["first:r"], ["first2:r"])


def test_a_path_is_given_in_any_form_that_is_clear() -> None:
    paths = ShortPaths(["{urn:a}r/{urn:a}x", "{urn:a}r/{urn:b}x", "{urn:a}r/{urn:b}y"])
    assert paths.full("{urn:a}r/{urn:b}x") == paths.full("a:r/b:x") == "{urn:a}r/{urn:b}x"
    assert paths.full("r/y") == "{urn:a}r/{urn:b}y"
    assert paths.full("r/x") is None
    assert paths.full("z") is None


@given(st.lists(st.from_regex(r"[a-zA-Z/:#.0-9]{1,12}", fullmatch=True), min_size=1, max_size=6, unique=True))
def test_a_short_path_is_one_path(namespaces: list[str]) -> None:
    given_paths = [f"{{{uri}}}a/{{{namespaces[0]}}}b" for uri in namespaces]
    paths = ShortPaths(given_paths)
    assert [paths.full(paths.short(path)) for path in given_paths] == given_paths
