"""Results: from the entries that an engine reports to the ids and subscribers of each document."""
