"""Find out how often a local GGUF model is right, whether it knows when it is wrong, and what breaks it."""

__version__ = "0.1.0"
