"""Encoders as users write them: right ones, and some that do not fit."""

import keras

HERE = __name__


def rowwise(row_dim, outputs, sizes, seed):  # each row speaks for itself, as with the encoder mlp
    rows = keras.Input([None, row_dim])
    hidden = keras.layers.Dense(sizes[0], "tanh", kernel_initializer=_kernel(seed))(rows)
    return keras.Model(rows, keras.layers.Dense(outputs, name="said")(hidden))


def pooled(row_dim, outputs, sizes, seed):
    rows = keras.Input([None, row_dim])
    hidden = keras.layers.Dense(sizes[0], "relu", kernel_initializer=_kernel(seed))(rows)
    mean = keras.layers.GlobalAveragePooling1D(keepdims=True)(hidden)
    return keras.Model(rows, keras.layers.Dense(outputs, name="said")(mean))


def recurrent(row_dim, outputs, sizes, seed):  # one state says all
    rows = keras.Input([None, row_dim])
    last = keras.layers.LSTM(sizes[-1], kernel_initializer=_kernel(seed))(rows)
    said = keras.layers.Dense(outputs, name="said")(last)
    return keras.Model(rows, keras.layers.Reshape([1, outputs])(said))


def nested(row_dim, outputs, sizes, seed):  # two layers are a model of their own
    inner = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(outputs)])
    rows = keras.Input([None, row_dim])
    return keras.Model(rows, inner(rows))


def flat(row_dim, outputs, sizes, seed):  # forgets the axis of what M parts say
    rows = keras.Input([None, row_dim])
    last = keras.layers.GlobalAveragePooling1D()(rows)
    return keras.Model(rows, keras.layers.Dense(outputs)(last))


def narrow(row_dim, outputs, sizes, seed):  # says too little
    rows = keras.Input([None, row_dim])
    return keras.Model(rows, keras.layers.Dense(outputs - 1)(rows))


def short(row_dim, outputs, sizes, seed):  # reads three rows alone
    rows = keras.Input([3, row_dim])
    return keras.Model(rows, keras.layers.Dense(outputs)(rows))


def half(row_dim, outputs, sizes, seed):  # says it in half precision
    rows = keras.Input([None, row_dim])
    return keras.Model(rows, keras.layers.Dense(outputs, dtype="float16")(rows))


def running(row_dim, outputs, sizes, seed):  # keeps statistics that nothing would save
    rows = keras.Input([None, row_dim])
    hidden = keras.layers.BatchNormalization()(rows)
    return keras.Model(rows, keras.layers.Dense(outputs)(hidden))


def weightless(row_dim, outputs, sizes, seed):  # has nothing to learn
    rows = keras.Input([None, row_dim])
    return keras.Model(rows, keras.layers.Lambda(lambda given: given[..., :outputs])(rows))


def nothing(row_dim, outputs, sizes, seed):
    """Returns no model."""


def failing(row_dim, outputs, sizes, seed):
    raise ZeroDivisionError("in the encoder")


_kernel = keras.initializers.GlorotUniform
