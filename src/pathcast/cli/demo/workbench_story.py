"""What the demo tells the workbench: its steps, and the overlay with its traffic, as documents of the demo's broker.

    feed demo-story     <step name="kill">…</step>                                  a document per step
    feed overlay        <overlay><link sender="r1" router="r2" messages="…" bytes="…" annotations="…" …/>…</overlay>

The page `/overlay` shows the newest overlay and all steps. Both are ordinary documents, so curl receives them, too. The
overlay is published again with each micro-batch that has changed its traffic.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from .overlay_traffic_drawing import traffic_of

if TYPE_CHECKING:
    from pathcast.client import Client

    from .delivery_check import Line

STORY: Final = "demo-story"
OVERLAY: Final = "overlay"


class WorkbenchStory:
    """Publishes the demo's story to a broker, which may be killed and started again meanwhile."""

    def __init__(self, client: "Client", folder: Path) -> None:
        """`folder`: where the stream writes."""
        self._client, self._folder = client, folder
        self._overlay = ""

    def tell(self, step: str, text: str) -> None:
        """Publish one step, and the overlay if its traffic has changed."""
        self._client.publish(STORY, f"<step name={quoteattr(step)}>{escape(text)}</step>")
        self._show_overlay()

    def _show_overlay(self) -> None:
        try:
            overlay = overlay_document(self._folder)
        except FileNotFoundError:
            return  # the stream is writing a micro-batch again: the next step shows it
        if overlay != self._overlay:
            self._client.publish(OVERLAY, overlay)
            self._overlay = overlay

    def begin(self, documents: int, subscriptions: int) -> None:
        """The scene, and the overlay without traffic."""
        self.tell(
            "publishers",
            f"Five publishers have {documents:,} market reports, each in a schema of its own. Readers have "
            f"{subscriptions:,} subscriptions, all in one schema.",
        )
        self.tell(
            "mediation", "Mappings rewrite each report into the readers' schema. What is delivered is the original."
        )
        self.tell(
            "routers", "The reports pass through 15 routers. Annotations tell the next router what is known already."
        )
        self.tell("joins", "Stocks and reviews are extracted from the reports and joined for investors.")

    def check(self, lines: "list[Line]") -> None:
        """Whether the output of the stream is right."""
        self.tell("check", _shown(lines))

    def check_broker(self, lines: "list[Line]", before: int) -> None:
        """Whether the broker delivered everything."""
        self.tell("broker", f"The broker was killed after {before:,} reports, and started again. {_shown(lines)}")


def _shown(lines: "list[Line]") -> str:
    counts = "; ".join(f"{line.what}: {line.found:,} of {line.expected:,}" for line in lines)
    return f"{'Nothing was lost or repeated' if all(line.right for line in lines) else 'Wrong'}: {counts}."


def overlay_document(folder: Path) -> str:
    """The overlay of the demo, and the sums of its links' rows."""
    traffic = traffic_of(folder)
    names = list(traffic.ledger.topology.nodes)
    links = []
    for link, (first, second) in enumerate(traffic.ledger.topology.ends.tolist()):
        sums = " ".join(f'{name}="{counts[link]}"' for name, counts in traffic.sums.items())
        links.append(f'<link sender="{names[first]}" router="{names[second]}" {sums}/>')
    return f"<overlay>{''.join(links)}</overlay>"
