import json
import math
import types

import gymnasium
import numpy as np
import pytest

import music_tf
from music_tf.config.settings import EnvConfig
from music_tf.config.world import DISCOUNT
from music_tf.envs import skill_choice
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.skill_choice import SkillChoice
from music_tf.errors import UsageError
from music_tf.reading.stored import read_run
from music_tf.storage import loading
from music_tf.storage.loading import load_policy
from music_tf.storage.warm_start import export_weights
from music_tf.types import Declared
from tests.kit.boxed import Boxed
from tests.kit.cases import cases
from tests.kit.one_by_one import trainer_of
from tests.kit.saved_run import rows_of, save_checkpoint, save_run, write_config
from tests.kit.small import go_on

POINT = "music_tf/PointPush-v0"


class Line(Boxed):
    """A place on a line that an action moves by 2; it pays the place, and ends at 8."""

    def __init__(self):
        super().__init__(1)
        self.action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def begin(self):
        self.place = 0.0

    def seen(self):
        return np.array([self.place])

    def step(self, action):
        self.place += float(action[0])
        return self.seen(), self.place, self.place >= 8.0, False, {}


@pytest.fixture
def line(monkeypatch):
    """Skill 0 goes up by 2, skill 1 down."""

    def act(observation, goal, skill, noise):
        assert noise is None
        return np.float32([[1.0 if skill[0, 0] else -1.0]])

    snapshot = types.SimpleNamespace(act=act)
    policy = types.SimpleNamespace(
        condition="one_hot",
        skills=2,
        goal_dim=0,
        observation_dim=1,
        action_dim=1,
        zero_goals=True,
        snapshot=snapshot,
        env_id="Line",
        recipe="sac_diayn",
        declared=Declared(low=[-2.0], high=[2.0]),
    )
    monkeypatch.setattr(loading, "load_policy", lambda run: policy)
    monkeypatch.setattr(EnvConfig, "skill_discount", 0.5)
    settings = EnvConfig(skills="somewhere", skill_steps=3)
    environment = SkillChoice(Line(), settings)
    environment.reset(seed=0)
    return environment


def test_a_choice_pays_the_discounted_sum_and_says_how_far_it_looks(line):
    state, reward, terminated, _, info = line.step(np.float32([0.3, 0.2]))  # 2, 4 and 6
    assert (state.tolist(), terminated) == ([6.0], False)
    assert (reward, info[DISCOUNT]) == (2.0 + 0.5 * 4.0 + 0.25 * 6.0, 0.5**2)
    _, reward, *_ = line.step(np.float32([-0.9, -0.8]))  # the largest names the skill: 4, 2 and 0
    assert reward == 4.0 + 0.5 * 2.0


def test_an_end_cuts_a_choice_short_and_its_true_length_counts(line):
    line.step(np.float32([1.0, 0.0]))
    state, reward, terminated, _, info = line.step(np.float32([1.0, 0.0]))  # 8, the end
    assert (state.tolist(), terminated, reward, info[DISCOUNT]) == ([8.0], True, 8.0, 1.0)


def test_a_choice_ends_in_its_own_last_state(line, monkeypatch):
    step, ends = Line.step, {"final_obs": np.array([9.0]), "TimeLimit.truncated": True}
    monkeypatch.setattr(Line, "step", lambda self, action: (*step(self, action)[:4], dict(ends)))
    line.step(np.float32([1.0, 0.0]))
    state, _, terminated, truncated, info = line.step(np.float32([1.0, 0.0]))
    assert (state.tolist(), terminated, truncated) == ([9.0], False, True)
    assert "final_obs" not in info  # the end of the choice is no end of the next one


def test_skills_are_refused_where_their_actions_mean_something_else(line):
    other = Line()
    other.action_space = gymnasium.spaces.Box(-3.0, 2.0, (1,), np.float32)
    with pytest.raises(UsageError, match=r"^actions: trained within -2\.\.2, now -3\.\.2\nenv\.sk"):
        SkillChoice(other, EnvConfig(skills="somewhere"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("skills")
    save_run(path, "sac_diayn", skills=3)
    return path


def test_it_acts_as_the_run_does_and_goals_are_columns(run):
    envs = LockstepEnvs(POINT, 1, EnvConfig(skills=str(run), skill_steps=7))
    plain = LockstepEnvs(POINT, 1)
    spec = envs.spec
    assert (spec.observation_dim, spec.goal_dim, spec.action_dim) == (8 + 3, 0, 3)
    assert spec.max_episode_steps == math.ceil(30 / 7)
    policy = load_policy(run)
    state, first = envs.reset([0], [5]).observation, plain.reset([0], [5])
    np.testing.assert_allclose(state[0], [*first.observation[0], *first.desired_goal[0]])
    rewards, seen = [], first.observation
    for choice, steps in ((2, 7), (0, 7), (1, 7), (1, 7), (0, 2)):
        total = 0.0
        for step in range(steps):
            taken = plain.step(policy.act(seen, np.zeros(3), choice), [0])
            seen, total = taken.observation, total + 0.99**step * float(taken.reward[0])
        rewards.append(total)
        found = envs.step(np.eye(3, dtype=np.float32)[[choice]], [0])
        np.testing.assert_allclose(found.observation[0, :8], seen[0], atol=1e-6)
        assert found.reward[0] == pytest.approx(total, rel=1e-5)
        assert found.extras[DISCOUNT][0, 0] == pytest.approx(0.99 ** (steps - 1))
    assert found.truncated[0]
    envs.close()
    plain.close()


def test_a_controller_may_choose_among_the_first_skills_of_a_run_alone(run):
    envs = LockstepEnvs(POINT, 1, EnvConfig(skills=str(run), skill_count=2))
    assert envs.spec.action_dim == 2
    envs.close()
    told = r"env\.skill_count: .* has 3 skills, expected no more, got 4"
    with pytest.raises(UsageError, match=told):
        LockstepEnvs(POINT, 1, EnvConfig(skills=str(run), skill_count=4))


def test_skills_that_were_trained_on_are_refused_but_by_runs_that_do_not_say_which(tmp_path):
    trainer = save_run(tmp_path / "skills", "sac_diayn", skills=3)
    path = str(tmp_path / "skills")
    digest = load_policy(path).digest(3)
    assert len(digest) == 64
    run, kept = read_run(tmp_path / "skills"), tmp_path / "kept"
    export_weights(tmp_path / "skills/checkpoints", kept, ("actor", "normalizer"), run)
    assert load_policy(kept).digest(3) == digest
    same = EnvConfig(skills=path, skill_count=3, skill_digest=digest)
    LockstepEnvs(POINT, 1, same).close()
    trainer.update.parameters.assign(1.5 * trainer.update.parameters)
    save_checkpoint(tmp_path / "skills", trainer, 2)
    LockstepEnvs(POINT, 1, same).close()  # made again, it keeps what it has
    skill_choice._same_skills.cache_clear()  # as in a new process
    told = rf"skills was trained further: .* {digest[:12]}, found .* at its epoch 2\n.* export"
    with pytest.raises(UsageError, match=rf"(?s){told}"):
        LockstepEnvs(POINT, 1, same)
    LockstepEnvs(POINT, 1, EnvConfig(skills=path, skill_count=3)).close()


@pytest.mark.thorough
def test_skills_that_are_learned_in_turn_stay_the_same_when_more_are_learned(tmp_path):
    trainer = trainer_of()
    write_config(tmp_path, trainer.config, "sac_disk")
    digests = []
    for epoch in range(1, 7):
        trainer.run_epoch(go_on)
        if epoch % 2 == 0:
            save_checkpoint(tmp_path, trainer, epoch)
            policy = load_policy(tmp_path)
            digests.append([policy.digest(count) for count in range(1, policy.skills + 1)])
    assert [len(each) for each in digests] == [1, 2, 3]
    assert digests[2][:2] == digests[1]
    assert digests[1][:1] == digests[0]
    assert len(set(digests[2])) == 3


@cases(
    ("changes", "env_id", "text"),
    ({"skills": 1}, POINT, "expected a run with several skills, .* is ddpg with 1 as one_hot"),
    ({"skills": 2, "goals": "zero"}, "music_tf/PointReach-v0", "acts on 8 columns with 3 numb"),
)
def test_runs_that_do_not_fit_are_refused(tmp_path, changes, env_id, text):
    save_run(tmp_path, **changes)
    with pytest.raises(UsageError, match=text):
        LockstepEnvs(env_id, 1, EnvConfig(skills=str(tmp_path)))
    with pytest.raises(UsageError, match=r"env\.skills: RUN: expected a run directory"):
        LockstepEnvs(env_id, 1, EnvConfig(skills=str(tmp_path / "nowhere")))


@pytest.mark.thorough
def test_a_controller_trains_and_is_evaluated_as_it_acts(run, tmp_path):
    done = music_tf.train(
        "skills_controller",
        env_id=POINT,
        run_dir=tmp_path / "controller",
        epochs=2,
        cycles=2,
        updates=4,
        env={"skills": str(run), "skill_steps": 10},
        agent={"hidden_sizes": (8, 8)},
        collect={"steps": 6, "random_steps": 6, "updates_per_step": None},
        replay={"batch_size": 8},
        evaluation={"episodes": 2},
    )
    record = json.loads((done.path / "config.json").read_text())
    assert record["config"]["env"]["skill_count"] == 3  # whatever that run learns later
    assert record["config"]["env"]["skill_digest"] == load_policy(run).digest(3)
    rows = rows_of(done.path)
    assert len(rows) == 2
    assert 0.0 < float(rows[-1]["train/entropy"]) <= math.log(3)
    assert float(rows[-1]["eval/length"]) == 3.0
    policy = done.policy()
    assert (policy.observation_dim, policy.action_dim) == (11, 3)
    assert sorted(policy.act(np.zeros(11)).tolist()) == [0.0, 0.0, 1.0]
    assert done.evaluate(2)["policies"]["ours"]["eval/length"] == 3.0
