"""Settings: plain dataclasses that check themselves; standard library only."""
