"""Learners, one in each file: networks, and losses as pure functions of their weights."""
