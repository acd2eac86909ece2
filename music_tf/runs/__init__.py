"""A run from its command to its summary."""
