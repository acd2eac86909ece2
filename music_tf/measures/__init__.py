"""Metrics of episodes, in numpy."""
