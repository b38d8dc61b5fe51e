"""The terminal app (design 7); the only package that knows Textual.  Modules ending in ``_state`` hold its logic."""
