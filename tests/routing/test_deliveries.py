"""For every policy, topology and engine, the recipients of a document are those of one matcher over everything."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents import read
from pathcast.matching import engines
from pathcast.routing import Overlay, streaming_engines
from pathcast.transmission import Topology
from tests.routing.drawn import delivered, plain_pattern, world_of

LATE = ("L", "L-s", "L-d", "L+s", "L+d", "L+t", "L+st", "L+s-sd", "L+sd-sd", "L+sdt-sd")
EARLY = ("ES", "ES+s", "ES+sd", "ES+t", "ES+st", "adaptive", "adaptive(1)", "adaptive(0)")
seeds = st.integers(0, 1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
@settings(max_examples=8)
@given(seeds)
def test_deliveries_are_those_of_a_flat_matcher(engine: str, seed: int) -> None:
    world, random = world_of(seed), Random(seed)
    keep = random.choice((None, 1.0, 0.5, 0.1))
    if keep is not None:
        world.overlay.advertise(keep)
    policies = LATE + EARLY if engine in streaming_engines() else LATE
    for document in world.documents:
        expected = world.flat(document)
        for policy in random.sample(policies, 3):
            assert delivered(world.overlay.publish(document, policy, engine)) == expected


@pytest.mark.slow
@settings(max_examples=12)
@given(seeds)
def test_subscriptions_come_and_go_and_documents_come_from_anywhere(seed: int) -> None:
    world, random = world_of(seed), Random(seed)
    for document in world.documents * 2:
        for id in random.sample(sorted(world.subscriptions), k=len(world.subscriptions) // 4):
            world.overlay.unsubscribe(id)
            del world.subscriptions[id]
        for _ in range(random.randrange(4)):
            router, xpath = random.choice(world.overlay.routers), plain_pattern(random)
            world.subscriptions[world.overlay.subscribe(router, xpath, "eve")] = router, xpath, "eve"
        if random.random() < 0.2:
            world.overlay.advertise(random.choice((0.1, 0.5, 1.0)))
        at = random.choice(world.overlay.routers)
        report = world.overlay.publish(document, random.choice(LATE + EARLY), "yfilter", at=at)
        assert delivered(report) == world.flat(document)


def copies(overlay: Overlay, document: bytes, policy: str) -> dict[str, bytes]:
    """The deliveries, by router."""
    got: dict[str, bytes] = {}
    overlay.publish(document, policy, "yfilter", receive=lambda who, data: got.update({who.router: data}))
    return got


@pytest.mark.parametrize("policy", ["ES", "L"])
def test_subscribers_get_the_original_bytes(policy: str) -> None:
    overlay = Overlay(Topology.chain(3))
    for router in overlay.routers:
        overlay.subscribe(router, "//b", f"at {router}")
    for document in (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<a  x = "1"><b>é</b>\r\n</a>'.encode("latin-1"),
        "<?xml version='1.0'?><a><b>é</b></a>".encode("utf-16"),
        '<?xml version="1.0" encoding="windows-1252"?>\n<a>“<b>€</b>”</a>'.encode("cp1252"),
        '<?xml version="1.0" encoding="Shift_JIS"?>\n<a>東<b>京</b></a>'.encode("shift_jis"),
        '<a>東<b x="é"/></a>'.encode("utf-32"),
        b"<a><b/><!-- c --></a>\n\n",
    ):
        assert copies(overlay, document, policy) == dict.fromkeys(overlay.routers, document)


@pytest.mark.parametrize("policy", ["ES", "L"])
def test_text_stays_text_whatever_encoding_it_declares(policy: str) -> None:
    overlay = Overlay(Topology.chain(2))
    overlay.subscribe("r2", "/a[. = 'é']", "ada")
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'
    for document in (text, read(text), read(text.encode("latin-1"))):
        assert delivered(overlay.publish(document, policy, "yfilter")) == {("ada", "r2")}
