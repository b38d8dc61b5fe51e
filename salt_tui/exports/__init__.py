"""One run as a file for other programs: a registry of formats, one file each."""
