"""Figures of runs and studies as files; all is measured elsewhere, and matplotlib is loaded when one is drawn."""
