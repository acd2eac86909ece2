import json
import math
import types

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.conditioning import ConditionConfig
from music_tf.errors import UsageError
from music_tf.intrinsic.base import InputSpec
from music_tf.intrinsic.distance import Distance, _of_spectral_norm_one, _scale
from music_tf.networks.parameters import Layout
from music_tf.recipes.distance import DistanceConfig, sac_csd, sac_lsd, sac_metra
from tests.kit import terms
from tests.kit.cases import cases
from tests.kit.episodes import SPEC, STEPS, make_episodes

SIZE = 2


def distance(kind="sphere", size=SIZE, columns=(0, 2), scale=None, seen=(), facts=None, **config):
    condition = ConditionConfig(kind=kind, size=size, groups=config.pop("groups", 1))
    config = {"hidden_sizes": (16,), "normalize_inputs": scale is not None} | config
    settings = DistanceConfig(columns=seen, **config)
    measured = scale or np.float32([[0.0], [1.0]]).repeat(len(seen or columns), axis=1)
    made = terms.context(columns=columns, skills=size, scale=measured, **(facts or {}))
    return Distance(settings, made._replace(condition=condition))


def following(count, seed=0):
    """Episodes that go one unit a step along their condition in columns 0 and 2.

    Column 1 changes by about 1 at random in each step, column 3 by 1 in one of 40.
    """
    generator = np.random.default_rng(seed)
    condition = generator.normal(size=(count, SIZE)).astype(np.float32)
    condition /= np.linalg.norm(condition, axis=-1, keepdims=True)
    states = np.zeros([count, STEPS + 1, SPEC.observation_dim], np.float32)
    along = np.arange(STEPS + 1)[None, :, None] * condition[:, None]
    states[..., 0], states[..., 2] = along[..., 0], along[..., 1]
    steps = generator.normal(0.0, 1.0, (count, STEPS))
    switched = generator.random((count, STEPS)) < 1 / 40
    states[:, 1:, 1], states[:, 1:, 3] = steps.cumsum(axis=1), switched.cumsum(axis=1)
    return make_episodes(0, count)._replace(observation=states, skill=condition)


def batch_of(episodes, count=8):  # the first steps of some episodes, [1, B]
    return terms.made_transition(
        observation=tf.constant(episodes.observation[None, :count, 0]),
        next_observation=tf.constant(episodes.observation[None, :count, 1]),
        skill=tf.constant(episodes.skill[None, :count]),
    )


def test_the_reward_is_the_way_of_the_embedding_along_the_condition():
    term, episodes = distance(), following(8)
    weights = terms.weights_of(term, seed=3)
    kernel, bias, last, shift = (weight.numpy() for weight in weights["phi"])

    def phi(rows):
        return np.maximum(rows[:, [0, 2]] @ kernel + bias, 0.0) @ last + shift

    way = phi(episodes.observation[:, 1]) - phi(episodes.observation[:, 0])
    found = term.reward(weights, batch_of(episodes), {})
    np.testing.assert_allclose(found[0], (way * episodes.skill).sum(axis=-1), rtol=1e-4)
    assert terms.gradient_of_reward(term, batch_of(episodes), {}) is None


def test_under_a_place_steps_are_paid_for_the_way_that_they_come_nearer():
    scale = (np.float32([1.0, 2.0]), np.float32([0.5, 4.0]))
    term = distance(kind="ball", scale=scale, reach=2.0, train=False, hidden_sizes=())
    weights = {"phi": [tf.eye(2), tf.constant([9.0, 9.0])]}  # a bias does not count
    seen = np.zeros([3, SPEC.observation_dim], np.float32)
    seen[:, 0], seen[:, 2] = [1.0, 2.5, 2.5], [2.0, 2.0, 18.0]  # phi: (0, 0), (3, 0), (3, 4)
    batch = terms.made_transition(
        observation=tf.constant(seen[None, :-1]),
        next_observation=tf.constant(seen[None, 1:]),
        skill=tf.constant([[[0.0, 2.0]] * 2]),  # the place is (0, 4)
    )
    # from 4 to 5 away, then to 3
    np.testing.assert_allclose(term.reward(weights, batch, {}), [[-1.0, 2.0]], rtol=1e-5)
    assert distance().fulfilled is None


def test_skills_are_paid_by_their_zero_centred_codes():
    term = distance(kind="one_hot", size=3)
    episodes = make_episodes(0, 3, skills=3)
    weights = terms.weights_of(term, seed=1)
    towards = np.eye(3) * 1.5 - 0.5  # (e_k - 1/3) 3/2
    ends = [episodes.observation[:, end][:, [0, 2]] for end in (0, 1)]
    kernel, bias, last, _ = (weight.numpy() for weight in weights["phi"])
    points = [np.maximum(rows @ kernel + bias, 0.0) @ last for rows in ends]
    found, batch = term.reward(weights, batch_of(episodes, 3), {}), batch_of(episodes, 3)
    np.testing.assert_allclose(found[0], ((points[1] - points[0]) * towards).sum(-1), rtol=1e-3)
    term = distance(kind="one_hot", size=3, constraint="spectral")
    loss, _ = term.loss(
        weights, {"condition": batch.skill, **term._ends("seen", term._seen, batch)}
    )
    np.testing.assert_allclose(loss, -term.reward(weights, batch, {}).numpy().mean(-1), rtol=1e-5)


@pytest.mark.thorough
def test_an_embedding_of_time_grows_along_conditions_up_to_its_limit():
    episodes = following(64)
    # a step that follows z pays at most sqrt(D) where the mean of squares is held at 1
    for norm, least, most in (("mean", 1.1, 1.6), ("sum", 0.8, 1.15)):
        term = distance(dual_start=5.0, learning_rate=1e-2, norm=norm)
        weights, _ = terms.train(term, terms.filled_replay(episodes), 400)
        assert least < term.reward(weights, batch_of(episodes, 64), {}).numpy().mean() < most


def test_each_network_feels_its_own_loss_alone():
    term = distance(distance="density", dual_start=2.0)
    layout = Layout(term.networks)
    flat = tf.Variable(layout.initial())
    feed = terms.first_update(term.feed(terms.filled_replay(following(32)), 1, 0))

    def gradients(name="phi", factor=1.0):  # where the weights of one network are scaled
        scales = np.ones(layout.size, np.float32)
        scales[layout.span([name])] = factor
        with tf.GradientTape() as tape:
            loss, _ = term.loss(layout.split(flat * scales), feed)
        by_network = layout.split(tape.gradient(loss, flat))
        return {n: np.concatenate([np.ravel(p) for p in parts]) for n, parts in by_network.items()}

    before = gradients()
    assert set(before) == {"phi", "dual", "change_mean", "change_deviation"}
    assert all(np.abs(found).max() > 0.0 for found in before.values())
    with_other_phi = gradients("phi", 1.5)
    for name in ("change_mean", "change_deviation"):  # the density does not see phi
        np.testing.assert_array_equal(before[name], with_other_phi[name])
    with_other_price = gradients("dual", 3.0)
    assert (before["phi"] != with_other_price["phi"]).any()
    np.testing.assert_array_equal(before["change_mean"], with_other_price["change_mean"])
    np.testing.assert_allclose(3.0 * before["dual"], with_other_price["dual"], rtol=1e-5)


def test_the_gradient_of_two_workers_is_the_mean_of_theirs():
    term = distance()
    feed = terms.first_update(term.feed(terms.filled_replay(following(64)), 1, 0))
    halves = {name: tf.reshape(part, [2, 32, -1]) for name, part in feed.items()}
    gradients = [terms.gradient_of_loss(term, fed) for fed in (feed, halves)]
    np.testing.assert_allclose(*gradients, atol=1e-6)


@cases(
    ("settings", "squared", "model"),
    ({"distance": "l2"}, 0.11 / 3, 0.0),
    ({"distance": "one"}, 1.0, 0.0),
    # squares 0.11 / 4, and 3 log 2 + 1.5 log 2 pi
    ({"distance": "density"}, 0.11 / 3, 0.01375 + 2.0794415 + 2.7568156),
    ({"distance": "density", "density_loss": "released"}, 0.11 / 3, 0.0275 + 6.0),
)
def test_a_step_may_be_as_long_as_its_distance(settings, squared, model):
    settings = settings | {
        "slack": 10.0,
        "dual_start": 2.0,
        "lambda_floor": 3.0,
        "sigma_floor": 2.0,
    }
    scale = np.zeros(3, np.float32), np.full(3, 0.5, np.float32)
    term = distance(seen=(0, 1, 2), scale=scale, **settings)
    weights = {name: [0.0 * each for each in own] for name, own in terms.weights_of(term).items()}
    after = tf.constant([[[0.05, 0.15, -0.05]]])
    feed = {"seen": 0.0 * after, "seen_after": after, "condition": tf.ones([1, 1, 2])}
    loss, metrics = term.loss(weights, feed | {"modelled": 0.0 * after, "modelled_after": after})
    assert float(metrics["distance/slack"][0]) == pytest.approx(squared, rel=1e-5)
    assert float(loss[0]) == pytest.approx(model - 3.0 * squared, rel=1e-5)  # at a price of 3
    assert term.networks[1].value == pytest.approx(math.log(3.0))
    assert (term.steps_first, distance(update_order="first").steps_first) == (False, True)


@pytest.mark.parametrize("constraint", ["dual", "spectral"])
def test_an_embedding_does_not_learn_until_conditions_are_followed(constraint):
    term = distance(constraint=constraint, rest_until=0.5)
    feed = terms.first_update(term.feed(terms.filled_replay(following(64)), 1, 0))
    weights = terms.weights_of(term)
    step = term._step(weights, feed["seen"], feed["seen_after"])
    way = (step * feed["condition"]).numpy().sum(axis=-1)
    expected = way.sum() / np.linalg.norm(step, axis=-1).sum()  # conditions have length 1
    followed = float(term.loss(weights, feed)[1]["distance/followed"][0])
    assert followed == pytest.approx(expected, abs=1e-4)

    def resting(term, followed):
        term.adapt(learned := {"distance/followed": followed}, 3)
        return learned.get("distance/resting")

    assert resting(term, 0.5) == 1.0
    assert not np.any(terms.gradient_of_loss(term, feed))
    other = distance(constraint=constraint, rest_until=0.5)
    assert resting(term, 0.51) == 0.0
    assert np.any(terms.gradient_of_loss(term, feed))
    assert (resting(term, 0.2), resting(distance(), 0.2)) == (0.0, None)
    assert float(other._resting) == 1.0
    other.load(term.shared())
    assert float(other._resting) == 0.0
    assert not {name for name in distance().shared() if "resting" in name}


@pytest.mark.thorough
def test_a_light_that_is_seldom_switched_counts_ten_times_what_moves_at_once():
    episodes = following(256)
    episodes.observation[..., 2] = 0.0
    settings = {"seen": (1, 3, 2), "learning_rate": 3e-3, "sigma_floor": 1e-3}
    term = distance(distance="density", **settings)
    weights, _ = terms.train(term, terms.filled_replay(episodes), 1500)
    before = tf.constant(episodes.observation[:, 5][:, [1, 3, 2]])
    logs = term._change_deviation.rows(weights["change_deviation"], before).numpy()
    # deviations 1 and sqrt(39) / 40 = .156: weights 41 to 1; nothing changes column 2
    free, light, constant = np.median(logs, axis=0)
    assert math.exp(2.0 * (free - light)) > 10.0
    assert constant < light - 1.0
    _, metrics = term.loss(
        weights, terms.first_update(term.feed(terms.filled_replay(episodes), 1, 7))
    )
    spread = 2.0 * (free - max(constant, math.log(1e-3)))
    assert float(metrics["distance/weight_spread"][0]) == pytest.approx(spread, abs=0.7)


def test_a_linear_embedding_that_does_not_learn_is_a_turned_state():
    turned = distance(train=False, initializer="orthogonal", hidden_sizes=())
    (kernel, _) = terms.weights_of(turned)["phi"]
    np.testing.assert_allclose(kernel @ tf.transpose(kernel), np.eye(2), atol=1e-5)
    ends = tf.constant(following(8).observation[:, :2][..., [0, 2]])
    way = turned._step(terms.weights_of(turned), ends[:, 0], ends[:, 1])
    np.testing.assert_allclose(np.linalg.norm(way, axis=-1), 1.0, rtol=1e-5)
    assert {network.learning_rate for network in turned.networks} == {0.0}
    assert turned.feed(terms.filled_replay(following(8)), 3, 0) == {}
    assert turned.loss(terms.weights_of(turned), {}) == (0.0, {})
    as_it_is = {"train": False, "initializer": "orthogonal", "hidden_sizes": ()}
    apart = distance("ball", groups=2, **as_it_is)  # of two objects, which no turn may mix
    np.testing.assert_array_equal(terms.weights_of(apart)["phi"][0], np.eye(2))


@cases(
    ("deviation", "expected"),
    ([0.05, 0.3, 0.4, 0.01], [0.05, *3 * [0.2887]]),  # sqrt((.3^2 + .4^2 + .01^2) / 3)
    ([0.05, 0.3, 0.4, 0.3], [0.05, 0.3, 0.4, 0.3]),
)
def test_a_height_that_random_actions_hardly_change_counts_as_the_other_coordinates(
    deviation, expected
):
    world = types.SimpleNamespace(object=(3, 4, 5))
    measured = types.SimpleNamespace(
        info=world, measure=lambda seen: (np.zeros(4), np.array(deviation))
    )
    _, found = _scale(InputSpec((0, 3, 4, 5)), measured)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@cases(("same", "unit"), ((3, 4), 0.5), ((3,), 0.01))
def test_an_object_that_random_actions_never_move_has_the_unit_of_the_hand(same, unit):
    deviation = {(3, 4): [0.01, 0.01], (0, 1): [0.3, 0.6403]}  # sqrt((.3^2 + .6403^2) / 2) = .5
    made = terms.context(columns=(3, 4), skills=2, same=same, gripper=(0, 1))._replace(
        measure=lambda seen: (np.zeros(2), np.array(deviation[seen.columns])),
        condition=ConditionConfig(kind="sphere", size=2),
    )
    term = Distance(DistanceConfig(normalize_inputs=True, train=False), made)
    np.testing.assert_allclose(term.scales["phi"][1], unit, rtol=1e-3)
    assert ("hand, 0.5" in term.notice) == (unit != 0.01)


def test_kernels_of_lsd_have_a_largest_singular_value_of_one():
    drawn = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    for scale, shape in ((1.0, drawn), (1e-4, drawn.T), (30.0, np.linalg.qr(drawn)[0])):
        weight = tf.constant(scale * shape)
        assert np.linalg.norm(_of_spectral_norm_one(weight), 2) == pytest.approx(1.0, abs=1e-5)
    weight = tf.Variable(drawn)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(_of_spectral_norm_one(weight))
    left, sigma, right = np.linalg.svd(drawn)
    outer = np.outer(left[:, 0], right[0])  # the gradient of the largest singular value
    expected = 1.0 / sigma[0] - drawn.sum() / sigma[0] ** 2 * outer
    np.testing.assert_allclose(tape.gradient(total, weight), expected, rtol=1e-3, atol=1e-5)
    bias = tf.ones([5])
    assert _of_spectral_norm_one(bias) is bias


def test_spectral_kernels_never_lengthen_a_step():
    term = distance(constraint="spectral", seen=(0, 1, 2, 3))
    weights = terms.weights_of(term, seed=2)
    assert [network.name for network in term.networks] == ["phi"]
    before, after = np.random.default_rng(0).normal(size=(2, 500, 4)).astype(np.float32)
    way = np.linalg.norm(term._step(weights, before, after), axis=-1)
    assert (way <= np.linalg.norm(after - before, axis=-1) + 1e-5).all()
    longer = [7.0 * each if each.shape.rank == 2 else each for each in weights["phi"]]
    found = np.linalg.norm(term._step({"phi": longer}, before, after), axis=-1)
    assert found.max() < way.max() + 1e-3


def test_an_evaluation_says_whether_episodes_follow_and_how_far_the_embedding_goes():
    episodes = following(40)
    episodes.observation[:20] = np.repeat(episodes.observation[:20, :1], STEPS + 1, axis=1)
    linear = [np.float32([[2.0, 0.0, -2.0, 0.0], [0.0, 3.0, 0.0, -3.0]]), np.zeros(4, np.float32)]
    last = [np.float32([[1, 0], [0, 1], [-1, 0], [0, -1]]), np.zeros(2, np.float32)]
    made = distance(hidden_sizes=(4,))
    weights = {"phi": [tf.constant(part) for part in (*linear, *last)]}
    found = made.heldout(weights, episodes)
    assert found["distance/moved"] == 0.5
    # phi is (2 x, 3 y): the cosine of (2 a, 3 b) with (a, b)
    a, b = episodes.skill[20:].T
    expected = (2 * a**2 + 3 * b**2) / np.sqrt(4 * a**2 + 9 * b**2)
    assert found["distance/aligned"] == pytest.approx(float(expected.mean()), abs=1e-5)
    assert found["distance/units_0"] == pytest.approx(2.0, abs=1e-4)
    assert found["distance/units_1"] == pytest.approx(3.0, abs=1e-4)
    ended = episodes._replace(length=np.ones_like(episodes.length))  # after less than 1
    measured = (np.zeros(2, np.float32), np.full(2, 1e2, "f"))
    coarse = distance(hidden_sizes=(4,), scale=measured)
    unscaled = distance(hidden_sizes=(4,), scale=measured, normalize_inputs=False)
    for term, few in ((made, ended), (coarse, episodes), (unscaled, episodes)):
        assert term.heldout(weights, few)["distance/moved"] == 0.0
    still = (np.zeros(2, np.float32), np.full(2, 1e-6, "f"))
    taken_over = distance(hidden_sizes=(4,), scale=still)  # the scales of another run
    taken_over.load({"scales/phi": np.stack(measured)})
    assert taken_over.heldout(weights, episodes)["distance/moved"] == 0.0
    episodes.observation[:] = episodes.observation[:, :1]
    assert "distance/aligned" not in made.heldout(weights, episodes)


DOUBLING = {"phi": [tf.constant([[2.0, 0.0], [0.0, 2.0]]), tf.zeros([2])]}
"""Weights of an embedding that doubles its inputs."""


@cases(
    ("deviation", "z", "paid"),
    (1.0, 1.0, 1.5),  # dphi = (2, 0), and a speed of 2 is one of 4 in phi: 2 - 2^2 / 8
    (1.0, 0.5, 0.5),
    (1.0, 0.0, -0.5),
    (0.5, 1.0, 2.0),  # dphi = (4, 0): 4 - 4^2 / 8
)
def test_a_speed_is_one_of_the_inputs_whatever_an_embedding_makes_of_them(deviation, z, paid):
    measured = (np.zeros(2, np.float32), np.full(2, deviation, "f"))
    term = distance("ball", scale=measured, hidden_sizes=(), speed=2.0)
    steps = np.zeros([2, 1, 3, SPEC.observation_dim], np.float32)
    steps[1, ..., 0] = 1.0
    skill = tf.constant([[[z, 0.0]] * 3])
    batch = terms.made_transition(
        observation=tf.constant(steps[0]), next_observation=tf.constant(steps[1]), skill=skill
    )
    np.testing.assert_allclose(term.reward(DOUBLING, batch, {}), [[paid] * 3], rtol=1e-5)


def at_speeds(*speeds):
    """Episodes that each go along column 0 at a speed."""
    episodes = make_episodes(0, len(speeds))
    episodes.observation[:] = 0.0
    episodes.observation[..., 0] = np.arange(STEPS + 1) * np.array(speeds)[:, None]
    return episodes


def test_a_speed_is_read_off_the_episodes_before_learning_begins_on_any_ranks():
    slow, fast = at_speeds(*np.arange(0.1, 0.55, 0.1)), at_speeds(0, 0, *np.arange(0.6, 1.05, 0.1))
    together, apart = (distance("ball", speed="auto") for _ in range(2))
    together.observe({0: slow, 1: fast}, 0)
    apart.observe({1: fast}, 0)
    resumed = distance("ball", speed="auto")
    resumed.load_meta(json.loads(json.dumps(apart.meta())))
    resumed.observe({0: slow}, 1)
    for term in (together, resumed):
        assert term.adapt({}, 1)["distance/speed"] == pytest.approx(0.7 * 1.0, rel=0.012)
    assert together.adapt({}, 1) == resumed.adapt({}, 1)
    before = together.shared()
    together.observe({0: at_speeds(5.0)}, 2)
    np.testing.assert_equal(together.shared(), before)
    resumed = distance("ball", speed="auto")
    resumed.load(before)
    resumed.load_meta(together.meta())
    resumed.observe({0: at_speeds(5.0)}, 2)
    np.testing.assert_equal(resumed.shared(), before)
    typed = distance("ball", speed=3.0)
    typed.load(before)
    assert typed.adapt({}, 1) == {"distance/speed": 3.0}
    for seen in (3, [1, 2], [0.5] * 1204, {}):
        with pytest.raises(ValueError, match=r"seen: expected 1204 counts, found"):
            resumed.load_meta({"seen": seen})


@cases(("unit", "hand", "speed"), (1.0, 3.0, 2.1), (0.5, 3.0, 4.2), (0.5, 0.5, 1.4))
def test_an_object_goes_as_fast_as_the_hand_that_moves_it(unit, hand, speed):
    measured = (np.zeros(2, np.float32), np.full(2, unit, "f"))
    episodes = at_speeds(1.0)
    episodes.observation[..., 1] = np.arange(STEPS + 1) * hand
    term = distance("ball", scale=measured, facts={"gripper": (1,)}, speed="auto")
    term.observe({0: episodes}, 0)
    assert term.adapt({}, 1)["distance/speed"] == pytest.approx(speed, rel=0.012)


def test_a_speed_is_not_read_off_objects_at_rest():
    term = distance("ball", speed="auto")
    term.observe({0: at_speeds(0.4, 0.4, *3 * [0.9 / STEPS])}, 0)  # three move by less than 1
    with pytest.raises(UsageError, match=r"only 2 of 5 episodes .*\n.* --distance.speed 0.4"):
        term.adapt({}, 1)


def test_short_velocities_weigh_less_in_how_well_conditions_are_followed():
    episodes = at_speeds(1.0, 1.0)._replace(skill=np.float32([[1.0, 0.0], [-0.25, 0.0]]))
    term = distance("ball", hidden_sizes=(), speed=1.0)
    found = term.heldout(DOUBLING, episodes)
    assert found["distance/aligned"] == pytest.approx(0.6)  # (1 - 0.25) / 1.25


def test_under_a_place_an_evaluation_compares_with_the_way_to_it_from_the_start():
    episodes = at_speeds(1.0, 1.0)._replace(skill=np.float32([[1.0, 0.0], [0.0, 1.0]]))
    episodes.observation[..., 0] += 1.0
    scale = (np.zeros(2, np.float32), np.ones(2, np.float32))
    term = distance("ball", hidden_sizes=(), reach=6.0, train=False, scale=scale)
    # From (2, 0) the places are (4, 0) and (-2, 6) away, and both go along (1, 0).
    aligned = term.heldout(DOUBLING, episodes)["distance/aligned"]
    assert aligned == pytest.approx((1.0 - 2.0 / 40.0**0.5) / 2.0, abs=1e-5)


@cases(
    ("config", "text"),
    ({"seen": (0, 25)}, r"distance.columns: expected columns .* 0 to 24, got 25\nnearest: 24"),
    ({"modelled": (30,), "distance": "density"}, r"distance.modelled: .* got 30\nnearest: 24"),
    (
        {"columns": (0, 1, 2), "train": False, "hidden_sizes": ()},
        r"a copy of 3 columns .* got 2\n.*--condition.size 3",
    ),
    (
        {"modelled": (9, 10), "distance": "density", "facts": {"same": (9, 10)}},
        r"(?s)got \[9, 10\], constant .*: --.*modelled 0 1.*8 11",
    ),
)
def test_columns_that_do_not_serve_are_refused(config, text):
    with pytest.raises(UsageError, match=text):
        distance(**config)
    distance(distance="density", modelled=(8, 9), facts={"same": (9, 10)})
    distance(columns=(0, 1, 2), size=3, train=False, hidden_sizes=())


OF_OBJECTS = {"FetchPush-v4": (3, 4), "FetchSlide-v4": (3, 4), "FetchPickAndPlace-v4": (3, 4, 5)}


@pytest.mark.parametrize("recipe", [sac_metra, sac_csd, sac_lsd])
@pytest.mark.parametrize("env_id", [*OF_OBJECTS, "Hopper-v5"])
def test_presets_see_the_object_where_there_is_one(recipe, env_id):
    config = recipe("laptop", env_id)
    columns = OF_OBJECTS.get(env_id, ())
    assert config.rewards["distance"].columns == columns
    assert config.condition.size == (len(columns) or 2)
    both = tuple(range(6)) if columns and recipe is sac_csd else ()  # gripper and object
    reward = config.rewards["distance"]
    assert reward.modelled == both
    resting = bool(columns) and recipe is sac_metra
    fast = resting and env_id.startswith("FetchP")
    rest_until = (0.25 if fast else 0.5) if resting else -1.0
    assert (reward.hidden_sizes, reward.rest_until) == (() if resting else (64, 64), rest_until)
    kind = ("ball", "auto") if fast else ("sphere", math.inf)
    assert (config.condition.kind, reward.speed) == kind


def test_what_a_lost_object_pays_is_within_its_bounds_and_nothing_at_scale_0():
    mixing = distance(lost_pays=-5.0, clip=(-1.0, 1.0)).mixing
    assert mixing.bounds == (-5.0, 1.0)
    assert distance(lost_pays=-3.0).mixing.bounds == (-math.inf, math.inf)
    assert float(mixing.lowest(tf.constant(2.0))) == -10.0
    assert float(mixing._replace(scale=0.0).lowest(tf.constant(1.0))) == 0.0
