"""Store: compiled indexes on disk, as memory-mapped arrays under a checked manifest."""

from .snapshot import Snapshot, open_snapshot, read_manifest, reading_snapshot, write_snapshot

__all__ = ["Snapshot", "open_snapshot", "read_manifest", "reading_snapshot", "write_snapshot"]
