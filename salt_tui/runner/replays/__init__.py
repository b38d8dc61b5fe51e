"""Replays of a stored answer: which atoms of its beginning are changed, and the tokens that this gives."""
