"""Access tokens: what they are, and the file that holds their hashes."""
