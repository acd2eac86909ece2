import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.world import TIME
from music_tf.errors import UsageError
from music_tf.intrinsic import incremental
from music_tf.intrinsic.incremental import Incremental
from music_tf.recipes.disk import DiskConfig
from tests.kit.cases import cases
from tests.kit.episodes import make_episodes
from tests.kit.terms import context, made_transition

STEPS = 4
RAW = DiskConfig(k=2, rows=8, balance="raw", schedule=False)
REPLAY = type("Replay", (), {"shards": {0: None}})


def term_of(config=RAW, skills=3, steps=STEPS, **changes):
    """A term on two columns, with whatever extras its settings need."""
    extras = {"clock": TIME, "way": "stride:2"}
    made = context(columns=(0, 1), skills=skills, seed=1, extras=extras)
    spec = dataclasses.replace(made.spec, max_episode_steps=steps, extras={"clock": 1, "way": 2})
    return Incremental(dataclasses.replace(config, **changes), made._replace(spec=spec))


def walks(*walks, first_time=0):
    """Episodes that pass through places, the first of them before any step."""
    longest = max(map(len, walks)) - 1
    length = np.array([len(walk) - 1 for walk in walks])
    states = np.float32([[*walk, *[walk[-1]] * (longest + 1 - len(walk))] for walk in walks])
    clock = first_time + np.broadcast_to(np.arange(longest + 1.0), states.shape[:2])
    episodes = make_episodes(0, len(walks))
    return episodes._replace(
        observation=states,
        action=np.zeros([len(walks), longest, 1], np.float32),
        length=length,
        extras={"clock": np.float32(clock)[..., None], "way": 10 * states},
    )


def paid(term, *queries, before=(0.0, 0.0), time=0, cycle=0):
    """What a minibatch of steps to these places earns, and what is measured of it."""
    feed = {n: tf.constant(array[0]) for n, array in term.feed(REPLAY, 1, cycle).items()}
    after = tf.constant([queries], tf.float32)
    batch = made_transition(
        observation=tf.zeros_like(after) + tf.constant(before),
        next_observation=after,
        extras={"clock": tf.fill([1, len(queries), 1], float(time))},
        next_extras={"way": 10 * after},
    )
    reward = term.reward({}, batch, feed)
    measured = term.measures(reward, batch, feed)
    return reward.numpy()[0], {name: float(value[0]) for name, value in measured.items()}


LINE = [(0, 0), (1, 0), (2, 0), (3, 0)]
"""A walk of three steps, to (1, 0), (2, 0) and (3, 0)."""


def test_a_step_is_paid_for_distance_from_others_and_fined_for_distance_from_itself():
    term = term_of(alpha=0.5, beta=2.0)
    term.skill = 1
    term.remember(0, walks(LINE))
    term.observe({0: walks([(0, 0), (0, 1), (0, 2)])}, 0)
    # from (0, 4): 2nd nearest of the other skill is (2, 0), own 2nd nearest is (0, 1)
    reward, _ = paid(term, (0.0, 4.0))
    assert reward == pytest.approx([2.0 * math.sqrt(4 + 16) - 0.5 * 3.0])


def test_without_earlier_skills_the_first_distance_is_one_and_without_own_steps_the_second_zero():
    term = term_of()
    reward, measured = paid(term, (0.0, 4.0), (9.0, 9.0))
    np.testing.assert_array_equal(reward, [1.0, 1.0])
    assert (len(measured), set(measured.values())) == (4, {0.0})
    term.observe({0: walks([(0, 0), (0, 1)])}, 0)  # one row, and k is 2
    assert paid(term, (0.0, 4.0))[0] == [1.0]


def test_the_first_skill_differs_from_a_reference_and_later_ones_from_all_before_them():
    term = term_of()
    term.remember(0, walks(LINE))
    reference, _ = paid(term, (3.0, 3.0))
    assert reference == pytest.approx([math.sqrt(1 + 9)])
    term.remember(0, walks([(0, 0), (0, 3), (0, 3)]))
    term.remember(1, walks([(0, 0), (3, 2), (3, 2)]))
    term.begin_skill(1)
    assert paid(term, (3.0, 3.0))[0] == [3.0]
    term.begin_skill(2)  # the newest of the earlier skills is among them
    assert paid(term, (3.0, 3.0))[0] == [1.0]


@cases(
    ("descriptor", "expected"),
    ("position", 2.0),
    ("velocity", math.hypot(1.5, 0.0)),
    ("stride", 20.0),
)
def test_what_is_compared_is_a_place_its_change_or_a_stride(descriptor, expected):
    term = term_of(descriptor=descriptor)
    term.skill = 1
    term.remember(0, walks(LINE))
    reward, _ = paid(term, (4.0, 0.0), before=(1.5, 0.0))
    assert reward == pytest.approx([expected])


def test_equal_timesteps_compare_with_the_same_time_of_others_alone():
    term = term_of(timesteps="equal")
    term.skill = 1
    term.remember(0, walks(LINE, [(0, 0), (0, 1), (0, 2)]))
    assert paid(term, (0.0, 0.0), time=0)[0] == [1.0]  # (1, 0) and (0, 1)
    assert paid(term, (0.0, 0.0), time=1)[0] == [2.0]
    assert paid(term, (0.0, 0.0), time=2)[0] == [1.0]  # one row alone: it counts as missing
    with pytest.raises(UsageError, match=r"table of 5000 steps .* x 512 rows x 2 numbers") as told:
        term_of(timesteps="equal", rows=512, steps=5000)
    assert "nearest: --disk.rows 26," in str(told.value)


def test_more_rows_than_an_update_compares_with_are_drawn_anew_for_each():
    term = term_of(rows=3)
    term.skill = 1
    term.remember(0, walks([(n, 0) for n in range(50)]))
    drawn = term.feed(REPLAY, 4, 0)["past"]
    assert drawn.shape == (4, 1, 3, 2)
    assert len(np.unique(drawn[..., 0])) > 3
    np.testing.assert_array_equal(term.feed(REPLAY, 4, 0)["past"], drawn)
    assert not np.array_equal(term.feed(REPLAY, 4, 1)["past"], drawn)


def test_the_own_past_is_that_of_the_last_episodes_and_of_this_skill():
    term = term_of(own_episodes=2, rows=100)
    for first in (0, 100, 200):
        term.observe({0: walks([(first + n, 0) for n in range(STEPS + 1)])}, 0)
    own = term.of_worker(0)["own"][:, 0]
    np.testing.assert_array_equal(own, [101, 102, 103, 104, 201, 202, 203, 204])
    np.testing.assert_array_equal(term.prior(), [1, 0, 0])
    term.begin_skill(1)
    np.testing.assert_array_equal(term.prior(), [0, 1, 0])  # the current skill alone acts
    assert (term.of_worker(0)["own"].shape, term.of_worker(0)["own_times"].shape) == ((0, 2), (0,))


def test_of_very_many_steps_of_an_earlier_skill_some_are_remembered(monkeypatch):
    monkeypatch.setitem(incremental._KEPT, "pooled", 5)
    term = term_of()
    term.remember(0, walks([(n, 0) for n in range(50)]))
    kept = term.shared()["disk/past"][0, :, 0]
    assert term.shared()["disk/past_counts"].tolist() == [5, 0, 0]
    assert sorted(set(kept)) == kept.tolist()
    assert kept.max() > 10


def weights(term):
    feed = term.feed(REPLAY, 1, 0)
    return float(feed["beta"][0, 0]), float(feed["alpha"][0, 0])


def follow(term, past, own, updates=50):
    """Lets it see means of both distances over some updates, of which half had a past."""
    return term.adapt(
        {"disk/past": 0.5 * past, "disk/past_known": 0.5, "disk/own": own, "disk/own_known": 1.0},
        updates,
    )


def test_running_units_make_both_distances_one_from_the_first_updates_on():
    term = term_of(balance="running", alpha=0.2)
    assert weights(term) == pytest.approx((1.0, 0.2))
    logged = follow(term, 0.004, 0.01)
    assert weights(term) == pytest.approx((250.0, 20.0))
    assert logged == {"disk/skill": 0.0, "disk/beta": 250.0, "disk/alpha": pytest.approx(20.0)}
    follow(term, 0.104, 0.01)
    kept = (1 - 1 / 2500) ** 50  # about 0.98
    assert weights(term)[0] == pytest.approx(1 / (kept * 0.004 + (1 - kept) * 0.104))
    term.begin_skill(1)
    assert weights(term) == pytest.approx((1.0, 0.2))


def test_units_of_the_skill_before_are_means_over_all_its_updates():
    term = term_of(balance="previous")
    follow(term, 2.0, 1.0)
    follow(term, 5.0, 4.0, updates=100)
    assert weights(term) == (1.0, 1.0)
    term.begin_skill(1)
    assert weights(term) == pytest.approx((1 / 4.0, 1 / 3.0))
    follow(term, 100.0, 100.0)
    assert weights(term) == pytest.approx((1 / 4.0, 1 / 3.0))


def test_a_unit_that_the_first_skill_could_not_measure_comes_from_the_first_updates_of_the_second():
    term = term_of(balance="previous")
    term.adapt(
        {"disk/past": 0.0, "disk/past_known": 0.0, "disk/own": 2.0, "disk/own_known": 1.0}, 9
    )
    term.begin_skill(1)
    assert weights(term) == pytest.approx((1.0, 0.5))
    follow(term, 8.0, 1.0)
    follow(term, 16.0, 1.0)
    assert weights(term) == pytest.approx((1 / 8.0, 0.5))


def test_a_distance_that_nothing_had_is_not_logged():
    term, learned = term_of(), {"disk/past": 0.0, "disk/past_known": 0.0, "disk/own": 1.0}
    term.adapt(learned | {"disk/own_known": 0.0}, 5)
    assert learned == {"disk/past": 0.0, "disk/past_known": 0.0, "disk/own": 1.0}
    learned = {"disk/past": 1.5, "disk/past_known": 0.5, "disk/own": 0.0, "disk/own_known": 0.0}
    term.adapt(learned, 5)
    assert learned == {"disk/past": 3.0}


def test_the_sign_of_the_authors_code_on_means_of_the_previous_skill():
    term = term_of(balance="released", alpha=10.0, beta=2.0)
    assert weights(term) == (2.0, 10.0)
    follow(term, 4.0, 0.5)
    term.begin_skill(1)
    assert weights(term) == pytest.approx((1 / (2.0 * 4.0), -1 / (10.0 * 0.5)))


def test_a_skill_is_first_paid_for_spreading_and_then_for_repeating_itself():
    term = term_of(schedule=True)
    assert weights(term) == (1.0, 1.0)  # nothing to differ from: consistency is all there is
    term.remember(0, walks(LINE))
    found = []
    for term.progress in (0.0, 0.25, 0.5, 0.75, 1.0):
        found.append(weights(term)[1])
    np.testing.assert_allclose(found, [-0.99933, -0.96403, 0.0, 0.96403, 0.99933], atol=1e-5)


def test_the_skill_that_goes_furthest_from_the_others_is_found():
    term = term_of()
    term.begin_skill(1)
    assert term.frontier() == 0
    for skill, place in enumerate([(0.0, 0.0), (9.0, 0.0), (1.0, 0.0)]):
        term.remember(skill, walks([place] * 4))
    term.begin_skill(2)
    assert term.frontier() in {0, 1}
    term.skill = 3
    assert term.frontier() == 1


def test_what_is_saved_pays_the_same():
    term = term_of(balance="running", schedule=True)
    term.remember(0, walks(LINE, [(0, 0), (0, 5)]))
    follow(term, 3.0, 2.0)
    term.begin_skill(1)
    follow(term, 4.0, 3.0)
    term.observe({0: walks(LINE)}, 0)
    again = term_of(balance="running", schedule=True)
    again.load(term.shared())
    again.load_worker(0, term.of_worker(0))
    np.testing.assert_equal(again.shared(), term.shared())
    np.testing.assert_equal(again.feed(REPLAY, 3, 7), term.feed(REPLAY, 3, 7))
    assert again.skill == 1
    with pytest.raises(ValueError, match="past_counts"):
        again.load(term.shared() | {"disk/past_counts": np.array([10**6, 0, 0])})
