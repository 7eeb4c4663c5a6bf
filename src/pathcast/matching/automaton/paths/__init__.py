"""Plain paths: the lazily determinised automaton, and the walk of documents through it."""
