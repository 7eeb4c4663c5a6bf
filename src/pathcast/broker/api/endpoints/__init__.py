"""The endpoints of the HTTP surface: what each request does, and the shapes of what it takes and returns."""
