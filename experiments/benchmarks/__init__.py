"""The measurements behind `experiments/benchmark.py`: each runs in a process of its own."""
