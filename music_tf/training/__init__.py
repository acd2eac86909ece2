"""The loops: rollouts and updates, evaluation, metrics, checkpoints."""
