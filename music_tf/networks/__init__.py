"""Keras models used as pure functions of one flat parameter vector."""
