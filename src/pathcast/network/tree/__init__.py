"""A content-based network on a tree: forwarding tables with covering."""
