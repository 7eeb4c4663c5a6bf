"""Publications of a document: their enumeration, the predicates that they satisfy, and the paths that follow."""
