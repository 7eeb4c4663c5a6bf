"""The routing table of a router: patterns and the targets that want them."""
