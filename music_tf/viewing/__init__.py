"""Shows what was learned: drawing without a screen, videos, plots and reports."""
