"""Configuration: plain dataclasses and their parsing; standard library and tyro only."""
