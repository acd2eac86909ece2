"""Losses and objectives: pure functions of tensors."""
