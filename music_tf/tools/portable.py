"""Policies for computers without this package: numpy and one file of Python, or ONNX."""

import json
import re
from collections.abc import Mapping
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from music_tf.config.agents import RECURRENT
from music_tf.config.world import is_function
from music_tf.errors import UsageError
from music_tf.gate import ENVIRONMENT
from music_tf.networks.acting import GAUSSIANS, SkillSnapshots, Snapshot
from music_tf.networks.embedding import Embedding
from music_tf.process.children import check_extra
from music_tf.storage.policy import SavedPolicy
from music_tf.tools import robot_policy
from music_tf.tools.drawing import appearing
from music_tf.types import Array, bounds_of, moved_first, to_bounds, to_unit

_OPSET, _IR_VERSION = 17, 8
"""Versions of ONNX, old enough for runtimes of 2022."""


def write_robot(saved: SavedPolicy, folder: Path) -> None:
    """Writes `policy.py`, which needs numpy alone, and `policy.npz`, which it reads."""
    with appearing(folder / "policy.npz") as draft, open(draft, "wb") as file:
        np.savez(file, allow_pickle=False, about=json.dumps(about(saved)), **arrays(saved))
    text = Path(robot_policy.__file__).read_text(encoding="utf-8")
    shared = "\n\n".join(getsource(each) for each in (to_bounds, to_unit, bounds_of, moved_first))
    text = re.sub(r"from music_tf\.types import .*\n", lambda _: shared, text)
    with appearing(folder / "policy.py") as draft:
        draft.write_text(text, encoding="utf-8")


def about(saved: SavedPolicy) -> dict[str, Any]:
    """Returns sizes, origin and structure of a policy, as JSON values."""
    config, first = saved.stored.config, actors(saved)[0]
    layers = {str(number): _hidden(one) for number, one in enumerate(actors(saved))}
    return {
        "recipe": saved.recipe,
        "env_id": saved.env_id,
        "epoch": saved.epoch,
        "env_steps": saved.env_steps,
        "observation_dim": saved.observation_dim,
        "goal_dim": saved.goal_dim,
        "action_dim": saved.action_dim,
        ENVIRONMENT: vars(saved.declared) if saved.declared else None,
        "zero_goals": saved.zero_goals,
        "condition": saved.condition,
        "condition_dim": saved.skills,
        "condition_seen": first.inputs.condition,
        "acting": list(config.acting_skills),
        "actors": len(actors(saved)),
        "choices": first.actor == "categorical",
        "layers": layers | {"encoder": _hidden_of_encoder(saved), "phi": _hidden_of_phi(saved)},
        "clip": config.normalizer.clip,
        "input_clip": config.normalizer.input_clip,
        "inference": _inference(saved),
        "reach": _reach(saved),
    }


def _reach(saved: SavedPolicy) -> dict[str, Any] | None:
    """Returns what a place needs of an embedding to become a condition; None without one."""
    leads = saved.embedding
    if not isinstance(leads, Embedding):
        return None
    told = {name: getattr(leads, name) for name in ("condition", "near", "groups", "places")}
    return {"columns": list(leads.columns), **told}


def _inference(saved: SavedPolicy) -> dict[str, Any] | None:
    """Returns the structure of the encoder; None without one, or if it is the user's own code."""
    inference = saved.stored.config.agent.inference
    if inference is None or is_function(inference.encoder) or not actors(saved)[0].encoder:
        return None
    return {
        "latent": inference.latent,
        "deterministic": inference.deterministic,
        "full": inference.full,
        "recurrent": inference.encoder if inference.encoder in RECURRENT else "",
        "next_observation": inference.next_observation,
        "reward_scale": inference.reward_scale,
    }


def arrays(saved: SavedPolicy) -> dict[str, Array]:
    """Returns the weights and moments of all networks by their names in the archive."""
    found: dict[str, Array] = {}
    if isinstance(saved.embedding, Embedding):
        found |= _layers("phi", list(saved.embedding.weights))
        found |= {} if saved.embedding.scale is None else {"phi/scale": saved.embedding.scale}
    for number, one in enumerate(actors(saved)):
        found |= _layers(str(number), acting_weights(one))
        for name in ("observation", "goal"):
            moments = getattr(one.inputs, name)
            found |= {f"{number}/{name}/{part}": getattr(moments, part) for part in moments._fields}
    inference = _inference(saved)
    if inference is None:
        return found
    encoder = list(actors(saved)[0].encoder.values())
    if kind := inference["recurrent"]:
        *encoder, kernel, recurrent, bias, head, head_bias = encoder
        found |= {f"{kind}/kernel": kernel, f"{kind}/recurrent": recurrent, f"{kind}/bias": bias}
        found |= {f"{kind}/head": head, f"{kind}/head_bias": head_bias}
    return found | _layers("encoder", encoder)


def actors(saved: SavedPolicy) -> tuple[Snapshot, ...]:
    """Returns the actor of all skills, or one for each skill."""
    found = saved.snapshot
    return found.each if isinstance(found, SkillSnapshots) else (found,)


def acting_weights(snapshot: Snapshot) -> list[Array]:
    """Returns kernels and biases of the layers that compute the most likely action, in order."""
    weights = list(snapshot.weights.values())
    if snapshot.actor not in GAUSSIANS:
        return weights
    return [*weights[:-4], *weights[-2:]]  # without the head of the deviation


def _hidden(snapshot: Snapshot) -> list[bool]:
    """Returns for each layer whether a ReLU follows."""
    layers = len(acting_weights(snapshot)) // 2
    gaussian = GAUSSIANS.get(snapshot.actor)
    linear = 2 if gaussian is not None and gaussian.features else 1
    return [True] * (layers - linear) + [False] * linear


def _hidden_of_encoder(saved: SavedPolicy) -> list[bool]:
    """Returns the same for the layers of an encoder before its recurrent part, if any."""
    inference = _inference(saved)
    if inference is None:
        return []
    layers = len(actors(saved)[0].encoder) // 2
    if inference["recurrent"]:
        return [True] * (layers - 2)  # its and the last layer have five arrays
    return [True] * (layers - 1) + [False]


def _hidden_of_phi(saved: SavedPolicy) -> list[bool]:
    """Returns the same for an embedding."""
    leads = saved.embedding
    layers = len(leads.weights) // 2 if isinstance(leads, Embedding) else 0
    return [layer < layers - 1 for layer in range(layers)]


def _layers(name: str, weights: list[Array]) -> dict[str, Array]:
    return {
        f"{name}/{index // 2}/{('kernel', 'bias')[index % 2]}": array
        for index, array in enumerate(weights)
    }


# --- ONNX -------------------------------------------------------------------------------------


def write_onnx(saved: SavedPolicy, path: Path) -> None:
    """Writes the policy with the normalisation of its inputs as ONNX.

    Inputs are `observation` [B, O]; `goal` [B, G] if the environment has goals, zeros for an agent
    trained without them; and `condition` [B, K] if the actor reads one that may differ: a one-hot
    skill, or a latent. The output is `action` [B, A] as the environment takes it, in float32.
    """
    if saved.bounds is None:
        raise UsageError(
            "--onnx: the bounds of actions are unknown, since earlier versions did not store them\n"
            "--export FOLDER --parts actor,normalizer writes a file for numpy: act(..., unit=True)"
        )
    otherwise = "\nwithout it: --export FOLDER --parts actor,normalizer writes a policy for numpy"
    check_extra("--onnx", "onnx", "onnx", otherwise)
    import onnx  # noqa: PLC0415 - an extra

    model = _Graph(onnx, saved).model()
    onnx.checker.check_model(model)
    with appearing(path) as draft:
        draft.write_bytes(model.SerializeToString())


def _without_constant(
    facts: dict[str, Any], weights: dict[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Adds the one-hot vector of a single skill, which is constant, to the first bias."""
    if facts["condition"] != "one_hot" or facts["condition_dim"] > 1 or not facts["condition_seen"]:
        return facts, weights
    kernel, row = weights["0/0/kernel"], facts["observation_dim"]
    first = {
        "0/0/kernel": np.delete(kernel, row, axis=0),
        "0/0/bias": weights["0/0/bias"] + kernel[row],
    }
    return {**facts, "condition_seen": 0}, weights | first


class _Graph:
    """Collects the nodes and constants of a graph."""

    def __init__(self, onnx: ModuleType, saved: SavedPolicy) -> None:
        self._onnx = onnx
        self._about, self._weights = _without_constant(about(saved), arrays(saved))
        self._nodes: list[Any] = []
        self._constants: dict[str, np.ndarray] = {}

    def model(self) -> Any:
        helper, facts = self._onnx.helper, self._about
        several = facts["actors"] > 1
        sizes = {"observation": facts["observation_dim"], "goal": facts["goal_dim"]}
        sizes |= {"condition": facts["condition_dim"] * (several or facts["condition_seen"] > 0)}
        actions = [self._actor(number) for number in range(facts["actors"])]
        if several:
            actions = [self._masked_by_skill(number, one) for number, one in enumerate(actions)]
        self._in_units(self._node("Sum", actions, "unit"))
        value = self._onnx.helper.make_tensor_value_info
        kind = self._onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "policy",
            [value(name, kind, ["batch", size]) for name, size in sizes.items() if size],
            [value("action", kind, ["batch", facts["action_dim"]])],
            [self._onnx.numpy_helper.from_array(v, name) for name, v in self._constants.items()],
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        helper.set_model_props(model, {"music_tf": json.dumps(facts)})
        return model

    def _actor(self, number: int) -> str:
        """Adds an actor and returns the name of its actions."""
        facts, weights = self._about, self._weights
        parts = [self._normalized("observation", number, weights)]
        if facts["condition_seen"]:
            ends = np.array([[0], [facts["condition_seen"]], [1]], np.int64)  # start, end, axis
            names = [self._constant(f"{number}/slice_{at}", end) for at, end in enumerate(ends)]
            parts.append(self._node("Slice", ["condition", *names], f"{number}/seen"))
        if facts["goal_dim"]:
            parts.append(self._normalized("goal", number, weights))
        found = self._node("Concat", parts, f"{number}/inputs", axis=1)
        for layer, is_hidden in enumerate(facts["layers"][str(number)]):
            at = f"{number}/{layer}"
            parts = [f"{at}/{part}" for part in ("kernel", "bias")]
            kernel, bias = (self._constant(part, weights[part]) for part in parts)
            found = self._node("MatMul", [found, kernel], f"{at}/product")
            found = self._node("Add", [found, bias], f"{at}/sum")
            if is_hidden:
                found = self._node("Relu", [found], f"{at}/relu")
        if not facts["choices"]:
            return self._node("Tanh", [found], f"{number}/action")
        chosen = self._node("ArgMax", [found], f"{number}/choice", axis=1, keepdims=0)
        depth = self._constant(f"{number}/depth", np.array(facts["action_dim"], np.int64))
        off_on = self._constant(f"{number}/off_on", np.array([0.0, 1.0], np.float32))
        return self._node("OneHot", [chosen, depth, off_on], f"{number}/action", axis=-1)

    def _in_units(self, found: str) -> None:
        """Scales actions in [-1, 1] as `to_bounds` does, in single precision."""
        low, high = bounds_of(self._about[ENVIRONMENT])
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
            found = self._node(operation, [found, *names], f"scaled{at}" if at else "action")

    def _normalized(self, name: str, number: int, weights: Mapping[str, Array]) -> str:
        at = f"{number}/{name}"
        limit, clip = self._about["input_clip"], self._about["clip"]
        found = self._clipped(name, limit, f"{at}/bounded")
        for operation, part in (("Sub", "mean"), ("Div", "deviation")):
            constant = self._constant(f"{at}/{part}", weights[f"{at}/{part}"])
            found = self._node(operation, [found, constant], f"{at}/{operation.lower()}")
        return self._clipped(found, clip, f"{at}/normalized")

    def _clipped(self, values: str, limit: float, name: str) -> str:
        ends = np.array([-limit, limit], np.float32)
        names = [self._constant(f"{name}/end_{at}", end) for at, end in enumerate(ends)]
        return self._node("Clip", [values, *names], name)

    def _masked_by_skill(self, number: int, actions: str) -> str:
        """Multiplies the actions of one actor by its component of the one-hot skill."""
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
