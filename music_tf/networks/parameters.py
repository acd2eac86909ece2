"""One flat vector that holds the weights of every network of a run.

Each network reads its segments of the vector. So one all-reduce, one Adam step and one Polyak
average serve all networks, and a frozen copy is a copy of the vector. Names of weights do not
depend on the counters that Keras appends to names.
"""

import collections
import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, ParamSpec, TypeAlias, TypeVar, cast

import keras
import numpy as np
import tensorflow as tf

from music_tf.errors import UsageError
from music_tf.types import Array

Weights: TypeAlias = Mapping[str, list[tf.Tensor]]
"""Weights of each network by its name."""
SEED = "seed_generator_state"
"""Name of Keras's variable for the seed of a dropout, which is no weight."""
_SHOWN = 4
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Network:
    """A Keras model that is applied with weights from the flat vector."""

    name: str
    model: keras.Model
    learning_rate: float
    """Adam step size; 0 keeps the weights as they are."""

    def __post_init__(self) -> None:
        """Refuses a model with weights that are not trainable, which the flat vector would lack."""
        fixed = [each.path for each in self.model.non_trainable_variables if each.name != SEED]
        if fixed:
            more = ", ..." if len(fixed) > _SHOWN else ""
            raise UsageError(
                f"network {self.name}: expected a model whose weights are all trainable, got "
                f"{len(fixed)} others: {', '.join(fixed[:_SHOWN])}{more}\n"
                "give weights that stay fixed a Network of their own with learning rate 0; "
                "LayerNormalization has none"
            )
        if not self._variables:
            raise UsageError(f"network {self.name}: expected a model with weights, got none")

    @property
    def weight_names(self) -> list[str]:
        """Names like `actor/hidden_0/kernel`, as the model orders them; a second ends in `_1`."""
        names = [
            f"{self.name}/{layer}/{weight.name}"
            for layer, its in zip(_numbered(self.model.layers), self.model.layers, strict=True)
            for weight in its.trainable_variables
        ]
        before = (names[:index].count(name) for index, name in enumerate(names))
        return [f"{name}_{n}" if n else name for name, n in zip(names, before, strict=True)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(weight.shape) for weight in self._variables]

    @property
    def initial(self) -> Array:
        """Weights as Keras initialised them, flat."""
        return np.concatenate([np.ravel(weight.numpy()) for weight in self._variables])

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def _variables(self) -> list[keras.Variable]:
        return [weight for layer in self.model.layers for weight in layer.trainable_variables]

    def __call__(self, weights: Sequence[tf.Tensor], *inputs: tf.Tensor) -> tf.Tensor:
        """Applies the model with `weights` in place of its own."""
        fed = inputs[0] if len(inputs) == 1 else list(inputs)
        # recurrent layers have seeds of a dropout, which is not used
        seeds = [np.zeros(each.shape, each.dtype) for each in self.model.non_trainable_variables]
        outputs, _ = self.model.stateless_call(weights, seeds, fed)
        return outputs

    def rows(self, weights: Sequence[tf.Tensor], inputs: tf.Tensor) -> tf.Tensor:
        """Applies a model with one input and one output to inputs [..., n]; returns [..., m]."""
        outputs = self(weights, tf.reshape(inputs, [-1, inputs.shape[-1]]))
        return tf.reshape(outputs, [*inputs.shape[:-1], outputs.shape[-1]])


def _numbered(layers: Iterable[keras.Layer]) -> list[str]:
    """Returns names of layers; Keras's own, `dense_7`, are numbered anew: `dense`, `dense_1`."""
    names, counts = [], collections.Counter[str]()
    for layer in layers:
        kind = re.sub(r"_\d+$", "", layer.name)
        if kind.replace("_", "") != type(layer).__name__.lower():
            names.append(layer.name)
            continue
        names.append(f"{kind}_{counts[kind]}" if counts[kind] else kind)
        counts[kind] += 1
    return names


@dataclasses.dataclass(frozen=True)
class Scalar:
    """A number that is trained like a network, such as the logarithm of a temperature."""

    name: str
    value: float
    learning_rate: float
    shapes: ClassVar[list[tuple[int, ...]]] = [()]
    size: ClassVar[int] = 1

    @property
    def weight_names(self) -> list[str]:
        return [self.name]

    @property
    def initial(self) -> Array:
        return np.array([self.value], np.float32)


class Layout:
    """The places of the weights of several networks in the flat vector."""

    def __init__(self, networks: Iterable[Network | Scalar]) -> None:
        """Places the networks one after the other; refuses two weights of the same name."""
        self.networks = tuple(networks)
        self.names = [name for network in self.networks for name in network.weight_names]
        self._shapes = [shape for network in self.networks for shape in network.shapes]
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self.size = sum(self._sizes)
        if twice := [name for name, n in collections.Counter(self.names).items() if n > 1]:
            raise UsageError(
                f"{twice[0]}: two networks have a weight of this name\n"
                "give each network a name of its own"
            )

    def initial(self) -> Array:
        return np.concatenate([network.initial for network in self.networks]).astype(np.float32)

    def learning_rates(self) -> Array:
        return np.concatenate(
            [np.full(network.size, network.learning_rate, np.float32) for network in self.networks]
        )

    def span(self, names: Sequence[str]) -> slice:
        """Returns the part of the flat vector with these networks, which must be adjacent."""
        wanted = [network for network in self.networks if network.name in names]
        first = self.networks.index(wanted[0]) if wanted else 0
        if len(wanted) != len(names) or list(self.networks[first:][: len(wanted)]) != wanted:
            raise ValueError(f"expected networks that lie side by side, got {list(names)}")
        start = sum(network.size for network in self.networks[:first])
        return slice(start, start + sum(network.size for network in wanted))

    def split(self, flat: tf.Tensor) -> dict[str, list[tf.Tensor]]:
        """Returns the weights of each network by its name, reshaped."""
        weights = map(tf.reshape, tf.split(flat, self._sizes), self._shapes)
        return {network.name: [next(weights) for _ in network.shapes] for network in self.networks}

    def name_arrays(self, flat: Array) -> dict[str, Array]:
        """Returns each weight by name, for a checkpoint."""
        pieces = np.split(flat, np.cumsum(self._sizes)[:-1])
        return dict(zip(self.names, map(np.reshape, pieces, self._shapes), strict=True))

    def flatten(self, arrays: Mapping[str, Array]) -> Array:
        """Joins weights by name, with the shapes of `name_arrays`, into the flat vector."""
        return np.concatenate([np.ravel(arrays[name]) for name in self.names])


@contextlib.contextmanager
def in_float32() -> Iterator[None]:
    """Makes Keras models in float32, whatever a library or the user's `keras.json` has set."""
    policy, number = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_floatx(number)
        keras.config.set_dtype_policy(policy)


def compiled(
    function: Callable[Parameters, Result], xla: bool = False
) -> Callable[Parameters, Result]:
    """Compiles a function of nested tensors to a graph; XLA pays on a GPU alone."""
    # debug eagerly with `tf.config.run_functions_eagerly`
    # TensorFlow counts retraces by a function's code; a partial has none, so runs do not add up
    fresh = functools.partial(function)
    graph = tf.function(fresh, autograph=False, jit_compile=xla or None)
    return cast(Callable[Parameters, Result], graph)
