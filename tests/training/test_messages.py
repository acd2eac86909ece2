"""What learner and actors send each other comes out as it went in, or is refused."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_tf.config.settings import NormalizerConfig
from music_tf.errors import NumbersFault
from music_tf.networks.acting import Moments, NetworkInputs, Snapshot, arrays_of
from music_tf.rollout import blank, padded
from music_tf.training import messages
from music_tf.training.adaptation import Adaptation, no_visits
from music_tf.training.collect import Collected
from music_tf.types import EnvSpec, Episodes

SPEC = EnvSpec(
    env_id="X-v0",
    observation_dim=3,
    goal_dim=2,
    action_dim=1,
    max_episode_steps=4,
    extras={"force": 2, "discount": 1},
)


def played(spec, skills, steps, lengths, seed=0):  # padded episodes of any numbers
    random, count = np.random.default_rng(seed), len(lengths)
    empty = blank(spec, np.zeros([count, skills], np.float32), steps).named()
    filled = {
        name: random.standard_normal(rows.shape).astype(rows.dtype)
        if rows.dtype.kind == "f"
        else random.integers(2, size=rows.shape).astype(rows.dtype)
        for name, rows in empty.items()
    }
    return padded(Episodes.from_named(filled | {"length": np.array(lengths, np.int64)}))


@given(
    lengths=st.lists(st.lists(st.integers(1, 4), max_size=5), min_size=1, max_size=4),
    goals=st.integers(0, 2),
    extras=st.booleans(),
    ends=st.integers(0, 3),
    skills=st.integers(1, 3),
    unfinished=st.integers(0, 2**40),
)
def test_episodes_come_out_to_the_bit_as_sent(lengths, goals, extras, ends, skills, unfinished):
    spec = dataclasses.replace(SPEC, goal_dim=goals, extras=SPEC.extras if extras else {})
    form = messages.EpisodeFormat(spec, skills, 4)
    parts = [len(own) for own in lengths]
    whole = played(spec, skills, 4, [length for own in lengths for length in own])
    over = np.arange(ends) % 2 == 0
    packed = form.pack(Collected(whole, parts, over, unfinished))
    found = form.unpack(np.frombuffer(packed, np.uint8), len(parts), ends)
    assert (list(found.parts), found.unfinished) == (parts, unfinished)
    np.testing.assert_array_equal(found.succeeded, over)
    expected = whole.named()
    assert found.played.named().keys() == expected.keys()
    for name, rows in found.played.named().items():
        assert rows.dtype == expected[name].dtype
        np.testing.assert_array_equal(rows, expected[name], err_msg=name)


def spoiled(packed, at, number):
    data = np.frombuffer(packed, np.uint8).copy()
    data[at : at + 8] = np.frombuffer(np.int64(number).tobytes(), np.uint8)
    return data


def test_what_is_no_message_is_refused():
    form = messages.EpisodeFormat(SPEC, 1, 4)
    packed = form.pack(Collected(played(SPEC, 1, 4, [2, 4]), [2], np.zeros(2, bool)))
    whole = np.frombuffer(packed, np.uint8)
    assert len(form.unpack(whole, 1, 2).played.length) == 2
    for data, told in (
        (whole[:-1], "too early"),
        (np.append(whole, np.uint8(0)), "1 too many"),
        (spoiled(packed, 0, -1), "too early"),
        (spoiled(packed, 0, 2**60), "too early"),
        (spoiled(packed, 8, -1), "too early"),
        (spoiled(packed, 18, 5), "episodes of 4 to 5 steps, expected 1 to 4"),
        (spoiled(packed, 18, 0), "episodes of 0 to 4 steps"),
    ):
        with pytest.raises(NumbersFault, match=told):
            form.unpack(data, 1, 2)
    bad = played(SPEC, 1, 4, [2, 4])
    bad.reward[1, 2] = np.nan
    packed = form.pack(Collected(bad, [2], np.zeros(2, bool)))
    with pytest.raises(NumbersFault, match="reward is not finite"):
        form.unpack(np.frombuffer(packed, np.uint8), 1, 2)


def test_headers_come_back_and_other_formats_are_refused():
    order = messages.OrderHeader(
        messages.PLAY, number=7, cycle=10**9 + 3, at_random=True, code=75, world=2
    )
    assert messages.header_in(messages.headed(order, b"rest"), messages.OrderHeader) == order
    answer = messages.AnswerHeader(7, 3, 4, 2, fault=0, ends=5, stop=1, played_us=9, waited_us=8)
    data = messages.headed(answer, b"rest")
    assert messages.header_in(data, messages.AnswerHeader) == answer
    assert messages.body_of(data, messages.AnswerHeader).tobytes() == b"rest"
    for bit in range(8 * len(b"rest")):
        changed = data.copy()
        changed[messages.header_size(messages.AnswerHeader) + bit // 8] ^= 1 << bit % 8
        with pytest.raises(NumbersFault, match="a message of 92 bytes was changed on its way"):
            messages.body_of(changed, messages.AnswerHeader)
    with pytest.raises(NumbersFault, match="a message of format 2, expected 5"):
        messages.header_in(spoiled(data.tobytes(), 0, 2), messages.AnswerHeader)
    with pytest.raises(NumbersFault, match="a message of 10 bytes, expected at least 88"):
        messages.header_in(data[:10], messages.AnswerHeader)


@pytest.mark.parametrize("skills", [0, 3])
def test_a_snapshot_comes_out_bit_by_bit_as_it_went_in(skills):
    random = np.random.default_rng(0)

    def numbers(*shape):
        return random.standard_normal(shape).astype(np.float32)

    moments = [Moments(numbers(3), numbers(3)), Moments(numbers(0), numbers(0))]
    inputs = NetworkInputs(*moments, NormalizerConfig(), condition=1)
    weights = {"actor/action/kernel": numbers(4, 2), "actor/action/bias": numbers(2)}
    chooser = {"explorer/influence_model/mean/kernel": numbers(2, 1)}
    prior = numbers(skills) if skills else None
    snapshot = Snapshot("deterministic", weights, inputs, prior, explorer=chooser)
    form = messages.SnapshotFormat.of(snapshot)
    data = np.frombuffer(form.pack(snapshot), np.uint8)
    assert len(data) == 4 * (8 + 2 + 2 + 2 * 3 + skills)
    zeros = snapshot._replace(weights=dict.fromkeys(weights, np.zeros(1)), prior=None)
    zeros = zeros._replace(explorer=dict.fromkeys(chooser, np.zeros(1)))
    found = messages.SnapshotFormat(form.shapes).unpack(data, zeros)
    np.testing.assert_equal(arrays_of(found), arrays_of(snapshot))
    assert list(found.weights) == list(weights)


def test_visits_come_back_as_they_were_sent_or_are_refused():
    form = messages.VisitFormat(episodes=3, latent=2)
    generator = np.random.default_rng(0)
    empty = no_visits(4, 3, 2)
    visits = Adaptation(*(generator.normal(size=v.shape).astype(np.float32) for v in empty))
    data = np.frombuffer(form.pack(visits), np.uint8)
    back = form.unpack(data, 1, 4)
    for name, values in visits._asdict().items():
        np.testing.assert_array_equal(getattr(back, name), values)
    for ends in (3, 5, -1):
        with pytest.raises(NumbersFault, match="bytes, expected"):
            form.unpack(data, 1, ends)
    visits.means[2, 1, 0] = np.nan
    with pytest.raises(NumbersFault, match="not finite"):
        form.unpack(np.frombuffer(form.pack(visits), np.uint8), 1, 4)
