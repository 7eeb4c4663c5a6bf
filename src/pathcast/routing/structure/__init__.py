"""Structure annotations: the label paths of a document, so that the next router need not parse it."""
