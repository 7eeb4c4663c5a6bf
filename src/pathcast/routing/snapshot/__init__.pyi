from .stored_overlay import KIND as KIND
from .stored_overlay import StoredOverlay as StoredOverlay
from .stored_overlay import save_overlay as save_overlay
