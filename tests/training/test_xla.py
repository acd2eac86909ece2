"""What a GPU would run, compiled for the CPU: one loop that nothing calls back from."""

import re
import types
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from experiments.gpu import kernels_of
from music_tf.errors import EnvironmentFault
from music_tf.process.tensorflow_start import claim_gpu
from music_tf.recipes.influence import InfluenceConfig
from music_tf.training.incremental import SkillSequence
from tests.kit.cases import cases
from tests.kit.one_by_one import trainer_of as one_by_one
from tests.kit.pearl import small
from tests.kit.ranks import Beside
from tests.kit.small import HER, MUSIC, SOFT, paying, trainer_of

pytestmark = pytest.mark.thorough

_PAIRS = {"critics": 4, "target_critics": 2, "layer_norm": True, "return_clip": "paid"}
ENSEMBLE = replace(
    HER, agent=replace(HER.agent, **_PAIRS, update_order="sequential", actor_every=2)
)
DEEP = {"her": (HER, 150), "music": (MUSIC, 190), "soft": (SOFT, 230), "pairs": (ENSEMBLE, 560)}
"""Configurations, and the most products and fusions of an update: each is a kernel on a GPU."""
SEED = 11
"""Under which the object is touched: gradients that are mere rounding have no digits in common."""


@pytest.fixture(
    scope="module",
    params=[(name, copied) for name in DEEP for copied in (False, True)],
    ids=lambda param: f"{param[0]}-{'device' if param[1] else 'host'}",
)
def pair(request):
    """Two trainers that have collected the same, one of them with XLA, and the budget.

    There replay has a copy on the device or not.
    """
    name, copied = request.param
    config, budget = DEEP[name]
    agent = replace(config.agent, hidden_sizes=(16, 16, 16))
    plain, xla = (trainer_of(config, agent=agent, updates=4, seed=SEED) for _ in range(2))
    xla.update.use_xla()
    if copied:
        xla.copy_replay()
    for trainer in (plain, xla):
        trainer.collect()
    return plain, xla, budget


def updated_alike(plain, xla):  # the metrics of updates in both
    metrics, others = (each.update.run(each.feed(), each.schedules()) for each in (plain, xla))
    assert metrics.keys() == others.keys()
    for name, value in metrics.items():
        assert others[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    for name, array in plain.shared().items():
        if name.startswith(("parameters/", "targets/")):
            np.testing.assert_allclose(xla.shared()[name], array, atol=1e-5, err_msg=name)
    return metrics


def test_the_results_are_those_of_the_plain_graph_up_to_rounding(pair):
    plain, xla, _ = pair
    updated_alike(plain, xla)
    assert int(xla.update.step) == 4


def test_all_updates_are_one_loop_of_a_known_length_and_few_kernels(pair):
    _, xla, budget = pair
    text = xla.update.hlo(xla.feed(), xla.schedules())
    assert '"known_trip_count":{"n":"4"}' in text
    assert 0 < kernels_of(text) <= budget
    device = getattr(xla.feeding, "device", None)
    for table in device.tables if device else ():  # what is looked up stays in place
        shape = ",".join(map(str, table.shape))
        assert f"f32[{shape}]" in text
        assert not re.search(rf"= f32\[{shape}\]\S* copy\(", text)


def test_a_program_for_a_gpu_that_was_claimed_multiplies_in_single_precision(monkeypatch):
    config = tf.config
    gpu = types.SimpleNamespace(name="a GPU")
    monkeypatch.setattr(config, "list_physical_devices", lambda kind=None: [gpu])
    monkeypatch.setattr(config, "set_visible_devices", lambda *given: None)
    monkeypatch.setattr(config.experimental, "set_memory_growth", lambda *given: None)
    monkeypatch.setattr(config.experimental, "get_device_details", lambda given: {})
    config.experimental.enable_tensor_float_32_execution(True)  # as TensorFlow begins
    try:
        claim_gpu(needed=True)
        trainer = trainer_of(MUSIC)
        trainer.update.use_xla()
        trainer.collect()
        text = trainer.update.hlo(trainer.feed(), trainer.schedules())
    finally:
        config.experimental.enable_tensor_float_32_execution(True)
    products = re.findall(r"= \S+ dot\(.*", text)
    assert products
    assert all("operand_precision={highest,highest}" in product for product in products)


@cases(
    "changes",
    {},
    {"agent__posterior": "full"},
    {"agent__encoder": "gru", "agent__context_chunk": 3, "replay__batch_size": 16},
    ids=["published", "full", "gru"],
)
def test_latents_are_inferred_in_the_same_loop_of_all_phases(changes):
    plain, xla = (trainer_of(small(updates=4, **changes)) for _ in range(2))
    xla.update.use_xla()
    assert xla.copy_replay() == "replay stays on the host: it is a ring of steps"
    for trainer in (plain, xla):
        trainer.collect()
    assert updated_alike(plain, xla)["pearl/kl"] > 0.0
    assert '"known_trip_count":{"n":"4"}' in xla.update.hlo(xla.feed(), xla.schedules())


def test_distances_to_neighbours_are_part_of_one_program_too():
    plain, xla = (one_by_one(**{"disk.k": k}) for k in (3, 3))
    xla.update.use_xla()
    for trainer in (plain, xla):
        trainer.part(SkillSequence).begin_epoch(trainer)
        trainer.collect()
    assert updated_alike(plain, xla)["disk/past"] > 0.0


@pytest.mark.parametrize("times", [1, 2])
def test_the_influence_of_actions_is_part_of_one_program_too(times):
    paid = InfluenceConfig(samples=4, hidden_sizes=(8, 8), times=times)
    plain, xla = (trainer_of(paying(MUSIC, paid), updates=4) for _ in range(2))
    xla.update.use_xla()
    assert "has a copy on the device" in xla.copy_replay()
    for trainer in (plain, xla):
        trainer.collect()
    assert updated_alike(plain, xla)["reward/influence_max"] > 0.0


def test_ranks_that_meet_within_the_loop_and_a_gpu_that_is_not_there_are_refused():
    trainer = trainer_of(HER)
    trainer.update._comm = Beside(lambda value: value)
    with pytest.raises(ValueError, match="meet between updates"):
        trainer.update.use_xla()
    assert claim_gpu(needed=False) is None
    with pytest.raises(EnvironmentFault, match="--device gpu: TensorFlow sees no GPU") as fault:
        claim_gpu(needed=True)
    _, cure, look = str(fault.value).splitlines()
    assert cure.endswith("; else --device cpu")
    assert look.endswith('-c "import tensorflow; tensorflow.config.list_physical_devices()"')


def test_updates_that_do_not_fit_are_out_of_memory_not_a_bug(monkeypatch):
    def too_large(*given):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    trainer = trainer_of(HER)
    trainer.collect()
    monkeypatch.setattr(trainer.update, "_run_updates", too_large)
    with pytest.raises(MemoryError, match="the updates do not fit: OOM when allocating"):
        trainer.update.run(trainer.feed(), trainer.schedules())
