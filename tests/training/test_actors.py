"""A learner and actors in one process: the bits of one that does both, order of work, and lies."""

from dataclasses import replace

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.training.adaptation import MetaEvaluation
from music_tf.training.build import build_trainer
from music_tf.training.messages import AnswerHeader, headed, header_in, header_size
from music_tf.training.parts import TaskFamily
from tests.kit.cases import cases
from tests.kit.pearl import small as small_pearl
from tests.kit.small import ALL, HER, LEARNED_PRIOR, TIMES, assert_same_state, go_on, trainer_of
from tests.kit.wires import actors_of
from tests.training.test_lag import STEPS

pytestmark = pytest.mark.thorough

FOUR = {"workers": 4, "rollouts": 1, "cycles": 3}
CONFIGS = {**{name: replace(config, **FOUR) for name, config in ALL.items()}, "steps": STEPS}
CONFIGS["prior"] = replace(LEARNED_PRIOR, **FOUR)
CONFIGS["reaching"] = replace(HER, replay=replace(HER.replay, reach=0.3), **FOUR)
CONFIGS["steps"] = replace(STEPS, workers=2, rollouts=2)
CONFIGS["pearl"] = small_pearl(**FOUR, tasks__train=8)
OF_ACTORS = ("time/", "mpi/", "train/replay_ratio")


def told(row):
    return {n: v for n, v in row.items() if n not in TIMES and not n.startswith(OF_ACTORS)}


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("name", CONFIGS)
def test_two_actors_and_a_learner_compute_the_bits_and_metrics_of_one_process(name, lag):
    config = replace(CONFIGS[name], lag=lag)
    one = trainer_of(config)
    expected = [one.run_epoch(go_on) for _ in range(2)]
    with actors_of(config, 2) as actors:
        trainer = build_trainer(config, Communicator(), actors)
        rows = [trainer.run_epoch(go_on) for _ in range(2)]
        assert list(map(told, rows)) == list(map(told, expected))
        assert_same_state(one, trainer)
        assert trainer.counters.env_steps == one.counters.env_steps
    assert actors.codes == [0, 0]


@pytest.mark.parametrize("lag", [0, 1])
def test_with_a_lag_a_cycle_is_ordered_before_the_last_one_is_learned_from(lag):
    config = replace(HER, lag=lag, cycles=3)
    events = []
    with actors_of(config, 1) as actors:
        trainer = build_trainer(config, Communicator(), actors)
        order, learn = actors.order, trainer.update.run_parts
        actors.order = lambda given: (events.append(f"order {given.cycle}"), order(given))[1]
        trainer.update.run_parts = lambda *given: (events.append("learn"), learn(*given))[1]
        trainer.run_epoch(go_on)
    late = ["order 0", "order 1", "learn", "order 2", "learn", "learn"]
    assert events == (late if lag else ["order 0", "learn", "order 1", "learn", "order 2", "learn"])


def lying(**fields):
    def change(rank, data):
        header = header_in(data, AnswerHeader)
        if rank == 2 and header.cycle == 1:
            rest = data[header_size(AnswerHeader) :].tobytes()
            return headed(header._replace(**fields), rest)
        return data

    return change


@cases(
    ("fields", "told"),
    ({"number": 1}, r"rank 2: answered with number, .* \(1, 1, 1, 1\), expected \(3, 1, 1, 1\)"),
    ({"cycle": 7}, r"rank 2: answered .* \(3, 7, 1, 1\)"),
    ({"first_worker": 0}, r"rank 2: answered .* \(3, 1, 0, 1\)"),
    ({"ends": 10**6}, "rank 2: a message ends after"),
)
def test_an_actor_that_answers_something_else_is_named(fields, told):
    config = replace(HER, cycles=3)
    with pytest.raises(NumbersFault, match=told), actors_of(config, 2, lying(**fields)) as actors:
        build_trainer(config, Communicator(), actors).run_epoch(go_on)
    assert actors.codes == [4, 4]


def test_actors_share_the_visits_of_an_evaluation_and_the_learner_plays_none(monkeypatch):
    config = CONFIGS["pearl"]
    alone = trainer_of(config)
    expected = alone.part(TaskFamily).adaptation(alone).play(alone.snapshot(), "test", 3)
    visit, visited = MetaEvaluation._visit, []

    def watched(self, snapshot, part, rows, repeats):
        visited.append((self.envs, len(set(rows.tolist()))))
        return visit(self, snapshot, part, rows, repeats)

    monkeypatch.setattr(MetaEvaluation, "_visit", watched)
    with actors_of(config, 2) as actors:
        trainer = build_trainer(config, Communicator(), actors)
        adaptation = trainer.part(TaskFamily).adaptation(trainer)
        found = adaptation.play(trainer.snapshot(), "test", 3)
        random = adaptation.play(None, "test", 1)
    played = {id(envs): sum(n for e, n in visited if e is envs) for envs, _ in visited}
    # nine visits of two actors; the learner plays the three of random actions
    assert played.pop(id(trainer.envs)) == 3
    assert (sorted(played.values()), random.returns.shape) == ([4, 5], (3, 1, 3))
    for name, values in expected._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)
