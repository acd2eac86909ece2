"""What `study.py` is made of: plans, their runs side by side, and what is written of them."""
