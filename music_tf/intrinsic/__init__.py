"""Reward terms that need no task: one method a file."""
