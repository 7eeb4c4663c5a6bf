"""The schemes of the select-join paper: which messages a change becomes."""
