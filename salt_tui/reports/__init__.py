"""What was measured, written as text, JSON, CSV or Markdown; nothing is computed here."""
