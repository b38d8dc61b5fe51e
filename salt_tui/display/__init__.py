"""What a headless run shows on stderr while it works: a live table, plain lines, or nothing."""
