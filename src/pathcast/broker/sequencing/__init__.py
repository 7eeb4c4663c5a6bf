"""One order for everything: requests gathered into batches, and what a batch does to the log and the state."""
