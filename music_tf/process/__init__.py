"""This process among others, with the standard library alone."""
