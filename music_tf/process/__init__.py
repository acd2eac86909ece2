"""Processes, signals and the launcher; needs the standard library alone."""
