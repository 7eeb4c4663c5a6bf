"""The workbench: web pages that show a broker and let people try it, built on the public HTTP API alone."""
