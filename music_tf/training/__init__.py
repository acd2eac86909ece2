"""The training loop: rollouts, updates, evaluation, and the actors of several ranks."""
