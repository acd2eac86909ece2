"""Reward terms, one method in each file."""
