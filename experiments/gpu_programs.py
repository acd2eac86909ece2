"""Times a learner's XLA programs on a machine that has a GPU and JAX but no TensorFlow.

With `--device gpu` all updates of a cycle are one XLA program. TensorFlow writes it as HLO with its
arguments, and JAX compiles and runs it on the other machine with the same compiler:

    python -m experiments.gpu_programs export FOLDER             # on a CPU, with this package
    python3 FOLDER/gpu_programs.py run FOLDER OUT.json           # on the GPU, with JAX alone

The times exclude TensorFlow's runtime, which adds one launch per cycle. With `--tf32` products may
round their factors to TensorFloat-32, which is TensorFlow's default but not that of our training.
"""
# ruff: noqa: PLC0415 - each half loads its own library alone

import argparse
import datetime
import hashlib
import json
import re
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = (
    *((recipe, rows) for recipe in ("ddpg_her", "ddpg_music", "sac_her") for rows in (256, 4096)),
    *(("ddpg_her", rows) for rows in (1024, 16384)),
)
"""Recipes, and rows of a minibatch."""
_CAPACITY = 2_000
"""Transitions in replay: few, for small files, since look-ups miss the cache in any case."""
_RUNS = 20


def export(folder: Path, tf32: bool, programs: Sequence[tuple[str, int]] = PROGRAMS) -> None:
    """Writes `NAME.hlo.pb`, and `NAME.npz` with its arguments and the metrics of a CPU.

    Arguments are `a000`, `a001`, ... in the order of the program's parameters; `metrics` is its
    first output, [updates, names].
    """
    import tensorflow as tf

    from experiments.benchmark import FULL
    from experiments.measure import configuration, filled_trainer
    from music_tf.distributed import Communicator

    tf.config.experimental.enable_tensor_float_32_execution(tf32)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, folder)
    sizes, found = dict(vars(FULL)), {}
    for recipe, rows in programs:
        options = {"replay.batch_size": rows, "replay.capacity": _CAPACITY}
        trainer = filled_trainer(configuration(recipe, sizes, options), sizes, Communicator())
        trainer.update.use_xla()
        trainer.copy_replay()
        feed = tf.nest.map_structure(tf.convert_to_tensor, trainer.feed())
        given = (feed, trainer.schedules())
        program: Any = trainer.update._run_updates
        captured = map(_value, program.get_concrete_function(*given).captured_inputs)
        arguments = [*(leaf.numpy() for leaf in tf.nest.flatten(given)), *captured]
        module = program.experimental_get_compiler_ir(*given)(stage="hlo_serialized")
        metrics = np.asarray(program(*given)[0])
        name = f"{recipe}_{rows}"
        (folder / f"{name}.hlo.pb").write_bytes(module)
        arrays: dict[str, Any] = {f"a{i:03d}": array for i, array in enumerate(arguments)}
        np.savez_compressed(folder / f"{name}.npz", **arrays, metrics=metrics)
        found[name] = {"updates": sizes["updates"], "rows": rows}
    (folder / "programs.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _value(captured: Any) -> Any:
    """Returns the value of a captured tensor or variable."""
    import tensorflow as tf

    if captured.dtype == tf.resource:
        dtype = tf.as_dtype(captured._handle_data.shape_and_type[0].dtype)
        captured = tf.raw_ops.ReadVariableOp(resource=captured, dtype=dtype)
    return captured.numpy()


def run(folder: Path, out: Path) -> None:
    """Compiles and times each exported program on the first device that JAX finds."""
    import jax
    from jax.extend import backend

    jax.config.update("jax_enable_x64", True)
    client = backend.get_backend()
    device = client.devices()[0]
    found: dict[str, Any] = {"device": device.device_kind, "jax": jax.__version__, "date": _now()}
    for name, about in json.loads((folder / "programs.json").read_text()).items():
        found[name] = about | _measure(client, device, folder / name, about["updates"])
        print(name, found[name], flush=True)  # noqa: T201
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _measure(client: Any, device: Any, path: Path, updates: int) -> dict[str, Any]:
    import jax
    from jax._src.lib import _jax, hlo, xla_client

    # StableHLO has no `copy`, which equals its operand
    exported = xla_client.XlaComputation(path.with_suffix(".hlo.pb").read_bytes())
    text = exported.as_hlo_text(print_large_constants=True)
    text = re.sub(r"\bcopy\(", "reshape(", text)
    module = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    start = time.perf_counter()
    program = client.compile_and_load(
        _jax.mlir.hlo_to_stablehlo(module), _jax.DeviceList((device,)), xla_client.CompileOptions()
    )
    compile_s = time.perf_counter() - start
    stored = np.load(path.with_suffix(".npz"))
    names = sorted(name for name in stored.files if name != "metrics")
    seconds, results = [], []
    for _ in range(_RUNS + 2):
        arguments = [jax.device_put(stored[name], device) for name in names]  # may be overwritten
        jax.block_until_ready(arguments)
        start = time.perf_counter()
        outputs = program.execute_sharded(arguments).disassemble_into_single_device_arrays()
        jax.block_until_ready(outputs)
        seconds.append(time.perf_counter() - start)
        results.append(np.asarray(outputs[0][0]))
    expected = stored["metrics"]
    return {
        "compile_s": round(compile_s, 2),
        "update_ms": round(1e3 * statistics.median(seconds[2:]) / updates, 4),
        "update_ms_least": round(1e3 * min(seconds[2:]) / updates, 4),
        "kernels": kernels_of(program.hlo_modules()[0].to_string()),
        "sha256": hashlib.sha256(results[0].tobytes()).hexdigest()[:16],
        "same_bits": all(np.array_equal(result, results[0]) for result in results),
        "metrics_differ_by": float(
            np.max(np.abs(results[0] - expected) / (np.abs(expected) + 1e-3))
        ),
    }


def kernels_of(hlo: str) -> int:
    """Returns the number of products and fusions of an optimised program; each is a kernel."""
    return len(re.findall(r"= \S+ (?:fusion|dot|custom-call)\(", hlo))


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def main() -> None:
    """Exports programs, or runs exported ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("export", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", help="file of results, of `run`")
    parser.add_argument("--tf32", action="store_true", help="TensorFloat-32 products, of `export`")
    given = parser.parse_args()
    if given.action == "run" and given.out is None:
        parser.error("run: expected FOLDER OUT.json")
    if given.action == "export":
        export(given.folder, given.tf32)
    else:
        run(given.folder, given.out)


if __name__ == "__main__":
    main()
