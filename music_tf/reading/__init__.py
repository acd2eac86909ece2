"""Command lines, calls of Python and stored files, read into configurations."""
