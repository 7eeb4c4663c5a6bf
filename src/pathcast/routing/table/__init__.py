"""The routing table of a router: which patterns are wanted, and by whom."""
