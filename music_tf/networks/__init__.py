"""Keras models as pure functions of one flat parameter vector; numpy where policies are used."""
