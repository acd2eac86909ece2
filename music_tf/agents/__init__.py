"""Learners: one a file, each a set of networks with pure functions of their weights."""
