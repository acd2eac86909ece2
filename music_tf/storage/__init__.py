"""What lies on the disk: run directories, checkpoints, metrics, weights."""
