"""Policies for computers without this package: numpy and one file of Python, or ONNX."""

import dataclasses
import json
import re
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from music_tf import types
from music_tf.config import agents
from music_tf.config.world import is_function
from music_tf.errors import UsageError
from music_tf.gate import ENVIRONMENT
from music_tf.networks import acting, belief, embedding, policy
from music_tf.networks.acting import GAUSSIANS, Moments, SkillSnapshots, Snapshot, arrays_of
from music_tf.networks.embedding import Embedding
from music_tf.process.children import check_extra
from music_tf.storage.policy import SavedPolicy
from music_tf.tools.drawing import appearing
from music_tf.types import Array, bounds_of

_OPSET, _IR_VERSION = 17, 8
"""Versions of ONNX, old enough for runtimes of 2022."""
_HEAD = """from __future__ import annotations

import math

import numpy as np
"""
_CONSTANTS = {
    types: ("ALIGNED",),
    agents: ("MLP", "GRU", "LSTM", "LEAST_PRECISION", "LEAST_VARIANCE"),
}
_FUNCTIONS = (
    types.aligned,
    types.offsets,
    types.to_bounds,
    types.to_unit,
    types.bounds_of,
    types.moved_first,
)
_MODULES = (acting, belief, embedding, policy)
"""What a policy consists of; a module needs those before it."""
_OUR_IMPORTS = re.compile(r"^from (__future__|music_tf\S*) import (\([^)]*\)|.*)\n", re.MULTILINE)


def write_robot(saved: SavedPolicy, folder: Path) -> None:
    """Writes `policy.py`, which needs numpy alone, and `policy.npz`, which it reads."""
    with appearing(folder / "policy.npz") as draft, open(draft, "wb") as file:
        np.savez(file, allow_pickle=False, about=json.dumps(about(saved)), **arrays(saved))
    with appearing(folder / "policy.py") as draft:
        draft.write_text(_one_file(), encoding="utf-8")


def _one_file() -> str:
    constants = [
        f"{name} = {getattr(module, name)!r}"
        for module, names in _CONSTANTS.items()
        for name in names
    ]
    modules = [
        _OUR_IMPORTS.sub("", Path(str(module.__file__)).read_text(encoding="utf-8"))
        for module in _MODULES
    ]
    functions = [getsource(function) for function in _FUNCTIONS]
    return "\n\n".join([_HEAD, *constants, *functions, *modules])


def about(saved: SavedPolicy) -> dict[str, Any]:
    """Returns sizes, origin and structure of a policy, as JSON values."""
    first, inference = actors(saved)[0], saved.stored.config.agent.inference
    if inference is not None and (is_function(inference.encoder) or not first.encoder):
        inference = None  # a user's own code stays here
    leads = saved.embedding._asdict() if isinstance(saved.embedding, Embedding) else {}
    return {
        **{name: getattr(saved, name) for name in policy.FACTS},
        ENVIRONMENT: vars(saved.declared) if saved.declared else None,
        "actor": first.actor,
        "actors": len(actors(saved)),
        "condition_seen": first.inputs.condition,
        "normalizer": dataclasses.asdict(first.inputs.config),
        "inference": inference and inference._asdict(),
        "embedding": {name: leads[name] for name in leads if name not in ("weights", "scale")},
    }


def arrays(saved: SavedPolicy) -> dict[str, Array]:
    named = {
        f"actor_{number}/{name}": array
        for number, snapshot in enumerate(actors(saved))
        for name, array in arrays_of(snapshot).items()
    }
    if isinstance(saved.embedding, Embedding):
        named |= {f"embedding/{n}": array for n, array in enumerate(saved.embedding.weights)}
        named |= {} if saved.embedding.scale is None else {"scale": saved.embedding.scale}
    return named


def actors(saved: SavedPolicy) -> tuple[Snapshot, ...]:
    snapshot = saved.snapshot
    return snapshot.each if isinstance(snapshot, SkillSnapshots) else (snapshot,)


# --- ONNX -------------------------------------------------------------------------------------


def write_onnx(saved: SavedPolicy, path: Path) -> None:
    """Writes the policy with the normalisation of its inputs, as docs/viewing.md says."""
    if saved.bounds is None:
        raise UsageError(
            "--onnx: the bounds of actions are unknown, since earlier versions did not store them\n"
            "--export FOLDER --parts actor,normalizer writes a file for numpy: act(..., unit=True)"
        )
    otherwise = "\nwithout it: --export FOLDER --parts actor,normalizer writes a policy for numpy"
    if (kind := actors(saved)[0].actor) not in ("categorical", "deterministic", *GAUSSIANS):
        raise UsageError(f"--onnx: expected an actor of this package, got {kind!r}{otherwise}")
    check_extra("--onnx", "onnx", "onnx", otherwise)
    import onnx  # noqa: PLC0415 - an extra

    model = _Graph(onnx, saved).model()
    onnx.checker.check_model(model)
    with appearing(path) as draft:
        draft.write_bytes(model.SerializeToString())


def _layers_of(saved: SavedPolicy, snapshot: Snapshot) -> tuple[list[Array], int]:
    """Kernels and biases for the most likely action, and the size of the condition it reads."""
    weights, reads = list(snapshot.weights.values()), snapshot.inputs.condition
    if snapshot.actor in GAUSSIANS:
        weights = [*weights[:-4], *weights[-2:]]
    if saved.condition != "one_hot" or saved.skills > 1 or not reads:
        return weights, reads
    # the one-hot vector of a single skill is constant: it joins the first bias
    (kernel, bias), row = weights[:2], saved.observation_dim
    return [np.delete(kernel, row, axis=0), bias + kernel[row], *weights[2:]], 0


class _Graph:
    """Collects the nodes and constants of a graph."""

    def __init__(self, onnx: ModuleType, saved: SavedPolicy) -> None:
        self._onnx, self._saved = onnx, saved
        self._nodes: list[Any] = []
        self._constants: dict[str, np.ndarray] = {}

    def model(self) -> Any:
        helper, saved, each = self._onnx.helper, self._saved, actors(self._saved)
        several = len(each) > 1
        reads = several or _layers_of(saved, each[0])[1] > 0
        sizes = {"observation": saved.observation_dim, "goal": saved.goal_dim}
        sizes |= {"condition": saved.skills * reads}
        actions = [self._actor(number, snapshot) for number, snapshot in enumerate(each)]
        if several:
            actions = [self._masked_by_skill(number, name) for number, name in enumerate(actions)]
        self._in_units(self._node("Sum", actions, "unit"))
        value = self._onnx.helper.make_tensor_value_info
        kind = self._onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "policy",
            [value(name, kind, ["batch", size]) for name, size in sizes.items() if size],
            [value("action", kind, ["batch", saved.action_dim])],
            [self._onnx.numpy_helper.from_array(v, name) for name, v in self._constants.items()],
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        helper.set_model_props(model, {"music_tf": json.dumps(about(saved))})
        return model

    def _actor(self, number: int, snapshot: Snapshot) -> str:
        weights, reads = _layers_of(self._saved, snapshot)
        parts = [self._normalized("observation", number, snapshot.inputs.observation)]
        if reads:
            ends = np.array([[0], [reads], [1]], np.int64)  # start, end, axis
            names = [self._constant(f"{number}/slice_{at}", end) for at, end in enumerate(ends)]
            parts.append(self._node("Slice", ["condition", *names], f"{number}/seen"))
        if self._saved.goal_dim:
            reach = snapshot.inputs.reach
            goal = "goal" if reach is None else self._offsets(number, reach.astype(np.int64))
            parts.append(self._normalized(goal, number, snapshot.inputs.goal))
        output = self._node("Concat", parts, f"{number}/inputs", axis=1)
        layers, kind = len(weights) // 2, GAUSSIANS.get(snapshot.actor)
        linear = 2 if kind is not None and kind.features else 1
        for layer in range(layers):
            at = f"{number}/{layer}"
            kernel = self._constant(f"{at}/kernel", weights[2 * layer])
            bias = self._constant(f"{at}/bias", weights[2 * layer + 1])
            output = self._node("MatMul", [output, kernel], f"{at}/product")
            output = self._node("Add", [output, bias], f"{at}/sum")
            if layer < layers - linear:
                output = self._node("Relu", [output], f"{at}/relu")
        if snapshot.actor != "categorical":
            return self._node("Tanh", [output], f"{number}/action")
        chosen = self._node("ArgMax", [output], f"{number}/choice", axis=1, keepdims=0)
        depth = self._constant(f"{number}/depth", np.array(self._saved.action_dim, np.int64))
        off_on = self._constant(f"{number}/off_on", np.array([0.0, 1.0], np.float32))
        return self._node("OneHot", [chosen, depth, off_on], f"{number}/action", axis=-1)

    def _offsets(self, number: int, columns: np.ndarray) -> str:
        """Returns `types.offsets` for goals of the task."""
        names = [self._constant(f"{number}/reach_{row}", each) for row, each in enumerate(columns)]
        hand, thing = (
            self._node("Gather", ["observation", name], f"{name}/seen", axis=1) for name in names
        )
        of_object = self._node("Sub", ["goal", thing], f"{number}/of_object")
        of_hand = self._node("Sub", [thing, hand], f"{number}/of_hand")
        return self._node("Concat", [of_object, of_hand], f"{number}/offsets", axis=1)

    def _in_units(self, actions: str) -> None:
        """Scales actions in [-1, 1] as `to_bounds` does, in single precision."""
        low, high = bounds_of(vars(self._saved.declared))
        first, last = low.astype(np.float32), high.astype(np.float32)
        first = np.where(first < low, np.nextafter(first, last), first)  # inside double bounds
        last = np.where(last > high, np.nextafter(last, first), last)
        steps: list[tuple[str, list[Any]]] = [("Max", [first]), ("Min", [last])]
        if low.dtype.kind in "iu":
            steps.insert(0, ("Round", []))
        if (low != -1.0).any() or (high != 1.0).any():
            steps = [("Add", [1.0]), ("Mul", [0.5 * (last - first)]), ("Add", [first]), *steps]
        for at, (operation, values) in enumerate(steps, 1 - len(steps)):
            names = [self._constant(f"scale{at}", np.asarray(v, np.float32)) for v in values]
            actions = self._node(operation, [actions, *names], f"scaled{at}" if at else "action")

    def _normalized(self, name: str, number: int, moments: Moments) -> str:
        at, limits = f"{number}/{name}", self._saved.stored.config.normalizer
        values = self._clipped(name, limits.input_clip, f"{at}/bounded")
        for operation, moment in (("Sub", moments.mean), ("Div", moments.deviation)):
            constant = self._constant(f"{at}/{operation}_by", moment)
            values = self._node(operation, [values, constant], f"{at}/{operation}")
        return self._clipped(values, limits.clip, f"{at}/normalized")

    def _clipped(self, values: str, limit: float, name: str) -> str:
        ends = np.array([-limit, limit], np.float32)
        names = [self._constant(f"{name}/end_{at}", end) for at, end in enumerate(ends)]
        return self._node("Clip", [values, *names], name)

    def _masked_by_skill(self, number: int, actions: str) -> str:
        column = self._constant(f"{number}/column", np.array([number], np.int64))
        share = self._node("Gather", ["condition", column], f"{number}/share", axis=1)
        return self._node("Mul", [actions, share], f"{number}/own")

    def _constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = np.asarray(value)
        return name

    def _node(self, operation: str, inputs: list[str], name: str, **attributes: Any) -> str:
        node = self._onnx.helper.make_node(operation, inputs, [name], name, **attributes)
        self._nodes.append(node)
        return name
