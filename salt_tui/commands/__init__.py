"""What the commands do; `salt_tui.cli` parses and calls, so that ``--help`` imports none of this."""
