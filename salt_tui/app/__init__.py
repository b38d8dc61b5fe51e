"""The terminal app; the only package that knows Textual.  Modules ending in ``_state`` hold its logic."""
