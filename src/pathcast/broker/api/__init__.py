"""The broker's HTTP surface: routes, what they accept, what they answer.

A new route needs, beside its function, `@describes(…)` (package `openapi`) and a docstring that begins
`METHOD /path: summary`, and a row in REQUESTS of tests/broker/test_openapi.py. Without a description the application is
not built; without a row a test fails.
"""
