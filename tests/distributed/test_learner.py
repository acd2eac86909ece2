"""One rank learns and the others act: the same bits as in one process, whatever their number."""

import json
import os
import re
import signal
import sys

import numpy as np
import pytest

from music_tf.runs.session import OTHER_CYCLES
from music_tf.storage.metrics import OF_ACTORS
from tests.kit import jobs
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.demonstrated import play_at_random, write_demonstrations
from tests.kit.seen import FOLDER, SEEN

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

LEVELS = ("--task.weight-by", "moved", "--task.weight", 0, 0, 1, 1, "--task.weight-episodes", 8)
EPISODES = ("--cycles", 3, "--evaluation.episodes", 7, "--epochs", 2)
STEPS = (
    *("--env-id", COUNTING, "--rollouts", 2, "--collect.steps", 5, "--replay.draw", "steps"),
    *("--replay.overwrite", "oldest", "--replay.relabel-k", 0, "--cycles", 3, "--epochs", 2),
    *("--collect.random-steps", 45),
)
LEARNED_PRIOR = (
    *("--skills", 4, "--skill.prior", "learned", "--skill.hidden-sizes", 8),
    *("--agent.hidden-sizes", 8, "--threads", 1),
)


def learner(actors):  # how a learner and some actors are started; 0: one process that does both
    return {"ranks": 1 + actors} if actors else {"how": "alone"}


def words(path, actors, *more):
    return jobs.train(path, *more, *(("--learners", 1) if actors else ()))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):  # runs of one process, by what is asked for
    made, folder = {}, tmp_path_factory.mktemp("alone")

    def run_of(*more):
        if more not in made:
            path = folder / str(len(made))
            jobs.run(words(path, 0, *more), path, how="alone")
            made[more] = path
        return made[more]

    return run_of


@pytest.mark.parametrize("actors", [1, 2, 4])
@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("more", [(*EPISODES, *LEVELS), STEPS], ids=["episodes", "steps"])
def test_any_number_of_actors_gives_the_bits_of_one_process(alone, tmp_path, actors, lag, more):
    path, more = tmp_path / "run", (*more, "--lag", lag)
    ended = jobs.run(words(path, actors, *more), path, **learner(actors))
    jobs.assert_same_bits(path, alone(*more))
    assert f"{actors} actor(s) beside 1 learner(s)" in ended.out
    assert ended.out.count("ms, the learner ") == 1  # the line after the third cycle
    row = jobs.rows_of(path, without=())[-1]
    assert float(row["time/staleness_cycles"]) == lag
    assert all(float(row[name]) >= 0.0 for name in OF_ACTORS)
    if more[: len(STEPS)] == STEPS:  # of 15 steps in 8 environments, the second episode has 7 of 8
        assert (float(row["time/episodes"]), float(row["time/episodes_cut"])) == (16, 16)
    assert json.loads((path / "summary.json").read_text())["ranks"] == 1 + actors


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_level_rises_in_the_same_cycle_on_any_equal_ranks(alone, tmp_path, ranks):
    # without updates any ranks play the same episodes; an epoch is a cycle
    path, more = tmp_path / "run", ("--updates", 0, "--cycles", 1, "--epochs", 6, *LEVELS)
    jobs.run(jobs.train(path, *more), path, ranks=ranks)
    several, one = jobs.computed(path), jobs.computed(alone(*more))
    for name in ("state/level/task", "metrics/reward/task_level"):
        np.testing.assert_array_equal(several[name], one[name])
    levels = one["metrics/reward/task_level"].astype(float)
    assert 0.0 == levels[0] < levels[-1]
    assert len(np.unique(levels)) > 2


def test_demonstrations_give_the_same_bits_with_actors(alone, tmp_path):
    file = write_demonstrations(tmp_path / "shown.npz", *play_at_random(episodes=5))
    path, more = tmp_path / "run", (*EPISODES, "--demonstrations", file)
    ended = jobs.run(words(path, 2, *more), path, **learner(2))
    assert "demonstrations: 5 episodes" in ended.out
    jobs.assert_same_bits(path, alone(*more))


@pytest.mark.parametrize("lag", [0, 1])
def test_an_actor_draws_skills_by_the_prior_that_the_learner_has_learned(tmp_path, lag):
    paths = [tmp_path / "actors", tmp_path / "alone"]
    for path, actors in zip(paths, (1, 0), strict=True):
        _, _, *given = words(path, actors, *EPISODES, "--lag", lag, *LEARNED_PRIOR)
        jobs.run(["train", "sac_diayn", *given], path, real=True, **learner(actors))
    jobs.assert_same_bits(*paths)
    assert 1.0 < float(jobs.rows_of(paths[0])[-1]["skill/effective"]) < 4.0


@pytest.mark.parametrize("lag", [0, 1])
def test_two_learners_with_an_actor_each_give_the_bits_of_two_equal_ranks(tmp_path, lag):
    paths = [tmp_path / "teams", tmp_path / "equal"]
    for path, ranks, more in zip(paths, (4, 2), (("--learners", 2), ()), strict=True):
        jobs.run(jobs.train(path, *EPISODES, "--lag", lag, *more), path, ranks=ranks)
    jobs.assert_same_bits(*paths)


@pytest.mark.parametrize("then", [4, 0], ids=["four actors", "one process"])
def test_a_run_of_two_actors_goes_on_with_any_number(alone, tmp_path, then):
    path, more = tmp_path / "run", (*EPISODES, "--lag", 1)
    slow = {"phase": "update", "how": "slow"}
    with jobs.Job(words(path, 2, *more), path, fault=slow, **learner(2)) as job:
        ended = job.stop_after(1)
    assert ended.err.count("stopped and saved after") == 1
    again = f"music-tf launch -n 3 train --run-dir {path} --resume --learners 1"
    assert ended.err.splitlines()[-1] == again
    jobs.resume(path, *(("--learners", 1) if then else ()), **learner(then))
    jobs.assert_same_bits(path, alone(*more))


def test_a_run_with_actors_goes_on_with_equal_ranks(tmp_path):
    path = tmp_path / "run"
    jobs.run(words(path, 2, *EPISODES[:-1], 1), path, **learner(2))
    jobs.resume(path, "--epochs", 2, ranks=2)
    first, second = jobs.rows_of(path, without=())
    assert {name for name in OF_ACTORS if first[name]} == set(OF_ACTORS)
    assert not any(second[name] for name in OF_ACTORS)
    reductions = ("mpi/allreduce_ms", "mpi/wait_ms_max")
    assert [[bool(row[name]) for name in reductions] for row in (first, second)] == [
        [False, False],
        [True, True],
    ]


def test_a_checkpoint_of_equal_ranks_goes_on_with_actors_as_it_does_in_one_process(tmp_path):
    paths = [tmp_path / "actors", tmp_path / "alone"]
    for path, actors in zip(paths, (2, 0), strict=True):
        jobs.run(jobs.train(path, *EPISODES[:-1], 1), path, ranks=4)
        more = ("--learners", 1) if actors else ()
        jobs.resume(path, "--epochs", 2, *more, **learner(actors))
    jobs.assert_same_bits(*paths)


def test_actors_load_no_tensorflow_and_see_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    path = tmp_path / "run"
    more = ("--env-id", SEEN, "--epochs", 1, "--agent.return-clip", "off")
    jobs.run(words(path, 2, *more), path, real=True, **learner(2))
    learning, *acting = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3))
    assert (learning["tensorflow"], learning["gpus"]) == (True, "0")
    for found in acting:
        assert (found["tensorflow"], found["keras"], found["gpus"]) == (False, False, "-1")
        assert found["peak_mb"] < 160.0


@cases(
    ("ranks", "text"),
    (1, "--learners 1 needs at least 2 ranks, since the others act, got 1"),
    (4, "workers: expected a multiple of the 3 actors, got 4"),
    (5, "--learners: expected a multiple of the 2 learners to act, got 3"),
)
@pytest.mark.parametrize("how", ["launch", "mpirun"])
def test_what_ranks_cannot_share_is_refused_once_with_the_nearest(tmp_path, ranks, text, how):
    path = tmp_path / "run"
    asked = jobs.train(path, "--learners", 2 if ranks == 5 else 1)
    ended = jobs.run(asked, path, code=jobs.USAGE, ranks=ranks, how=how)
    assert ended.err.count(text) == ended.err.count("music-tf:") == 1
    assert len(ended.err.splitlines()) <= 10
    nearest = {4: "start 3 ranks, of which 2 act, or set --workers 3", 5: "start 6 ranks"}
    assert nearest.get(ranks, "") in ended.err
    assert not path.exists()


def test_ranks_that_were_told_of_other_learners_are_refused_and_do_not_wait(tmp_path):
    path = tmp_path / "run"
    apart = [":", "-n", "1", sys.executable, "-m", "mpi4py", "-m", "music_tf", *jobs.train(path)]
    asked = ("-m", "music_tf", *jobs.train(path), "--learners", "1", *apart)
    ended = jobs.mpirun(1, *asked, limit=100, code=jobs.USAGE)
    assert "--learners: expected the same on every rank, got [1, 0]" in ended.stderr
    assert not path.exists()


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "run"
    asked = {"code": jobs.ENVIRONMENT, "real": True}
    ended = jobs.run(words(path, 2, "--device", "gpu"), path, **asked, **learner(2))
    assert ended.err.count("music-tf: --device gpu: TensorFlow sees no GPU") == 1
    assert not path.exists()
    ended = jobs.run(words(path, 0, "--device", "gpu"), path, code=jobs.USAGE, ranks=2)
    assert "--device gpu: expected one rank that learns, got 2" in ended.err


OPENS = """
import os
import gymnasium
from music_tf.envs.toys import PointPush
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
gymnasium.register("Opens-v0", PointPush, max_episode_steps=30)
"""
"""A user's module that shows a GPU to every rank that imports it."""


def test_a_run_whose_actors_see_a_gpu_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "opens.py").write_text(OPENS)
    path = tmp_path / "run"
    asked = words(path, 2, "--env-id", "opens:Opens-v0")
    ended = jobs.run(asked, path, code=jobs.ENVIRONMENT, **learner(2))
    assert "rank 1 only acts, and sees a GPU" in ended.err
    assert not path.exists()


FAILS = """
import gymnasium
from music_tf.envs.toys import PointPush
from music_tf.process.launcher import launched_rank
class Fails(PointPush):
    made = 0
    def __init__(self, **options):
        Fails.made += 1
        if %s:
            raise RuntimeError("no licence")
        super().__init__(**options)
gymnasium.register("Fails-v0", Fails, max_episode_steps=30)
"""


@cases(
    ("fails", "actors"),
    ("launched_rank() == 0 and Fails.made > 2", 1),  # the learner, after the trial
    ("launched_rank() == 1", 1),
    ("launched_rank() == 1", 0),
)
def test_an_environment_that_a_rank_cannot_make_ends_all(tmp_path, fails, actors):
    (tmp_path / "fails.py").write_text(FAILS % fails)
    path = tmp_path / "run"
    asked = words(path, actors, "--env-id", "fails:Fails-v0", "--hang-after", 20)
    ended = jobs.run(asked, path, code=jobs.ENVIRONMENT, ranks=2)
    assert ended.err.count("the environment cannot be created (RuntimeError: no licence") == 1
    assert not path.exists()


def test_a_run_that_only_the_learner_can_refuse_ends_everywhere(tmp_path):
    path = tmp_path / "run"
    more = ("--env-id", "music_tf/PointPush-v0", "--lost-object", "absorb")
    ended = jobs.run(words(path, 2, *STEPS, *more), path, code=jobs.USAGE, **learner(2))
    assert ended.err.count("music-tf: --lost-object: absorb needs whole episodes") == 1
    assert len(ended.err.splitlines()) == 2
    assert not path.exists()


@cases(
    ("way", "more", "code", "told"),
    # with bounds of rewards, for which the learner would play first
    ("raises", ("--task.clip", -1, 0), jobs.ENVIRONMENT, "rank 1: 4 tries at one episode failed"),
    ("hangs", ("--hang-after", 2), jobs.HANGING, "in _go_wrong"),
)
def test_a_broken_environment_of_an_actor_ends_the_job(tmp_path, way, more, code, told):
    path, env_id = tmp_path / "run", f"tests.faults.faulty:Faulty/{way}-v0"
    asked = words(path, 2, "--env-id", env_id, "--epochs", 2, *more)
    ended = jobs.run(asked, path, code=code, **learner(2))
    assert told in ended.err
    assert "Traceback" not in ended.err or way == "hangs"


def test_a_learner_that_is_stopped_ends_the_job_with_the_stacks_of_others(tmp_path):  # F4
    path, rare = tmp_path / "run", ("--checkpoint-every", 10**6, "--hang-after", 3)
    with jobs.Job(
        words(path, 2, *EPISODES[:-1], 10**6, "--lag", 1, *rare), path, **learner(2)
    ) as job:
        pids = job.wait_for_ranks()
        job.wait_for_epoch(1)
        os.kill(pids[0], signal.SIGSTOP)
        ended = job.end(code=jobs.HANGING)
    assert re.search(r"music-tf: rank [12]: no progress for \d+ s; to resume:\n", ended.err)
    assert "most recent call first" in ended.err


@pytest.mark.parametrize("lag", [0, 1])
@cases(("way", "told"), ("action", "action[0, 0] is nan"), ("weights", "was changed on its way"))
def test_bad_numbers_of_an_actor_are_named_and_send_the_run_back(  # F14, F15
    tmp_path, lag, way, told
):
    path = tmp_path / "run"
    more = ("--env-id", f"tests.faults.acting:Acting/{way}-v0", "--cycles", 3, "--epochs", 4)
    ended = jobs.run(words(path, 2, *more, "--lag", lag), path, **learner(2))
    first, *others = ended.err.splitlines()
    assert first.startswith("warning: rank 1: ")
    assert told in first
    assert others[0].startswith("back to the checkpoint of epoch 1, continuing with 0.5 of the")
    assert_went_back(path)
    assert (path / "logs/rank_0001.bad_numbers.npz").exists() == (way == "action")


def assert_went_back(path):
    """A fault in the sixth cycle, or the one before, has cost the second epoch."""
    assert [row["epoch"] for row in jobs.rows_of(path)] == ["1", "2", "3", "4"]
    arrays, meta = jobs.state_of(path)
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert (meta["step_scale"], meta["counters"]["cycle"]) == (0.5, OTHER_CYCLES + 12)


@pytest.mark.parametrize("lag", [0, 1])
def test_a_learner_goes_back_while_actors_play_as_one_process_does(tmp_path, lag):  # F15
    paths = [tmp_path / "actors", tmp_path / "alone"]
    fault = {"phase": "update", "how": "nan", "after": 4, "once": True}
    for path, actors in zip(paths, (2, 0), strict=True):
        more = (*EPISODES[:-1], 4, "--lag", lag)
        ended = jobs.run(words(path, actors, *more), path, fault=fault, **learner(actors))
        assert "back to the checkpoint of epoch 1" in ended.err
        assert_went_back(path)
    jobs.assert_same_bits(*paths)


@cases(
    ("rank", "number", "restarts", "told"),
    (2, signal.SIGKILL, 0, "warning: rank 2 on .*, an actor, was lost; actors that go on: 1"),
    (1, signal.SIGSTOP, 0, "rank 1 has not answered for 5 s: it is killed"),
    (0, signal.SIGKILL, 1, "rank 0 on .* was lost; goes on after epoch .*, restarts left: 0"),
    (0, signal.SIGKILL, 0, "rank 0 on .* was lost; to resume:"),
)
def test_a_lost_rank_changes_no_bit(alone, tmp_path, rank, number, restarts, told):  # F26
    path, more = tmp_path / "run", (*EPISODES[:-1], 30, "--lag", 1)
    how = {"ranks": 3, "how": ("--restarts", str(restarts))}
    with jobs.Job(words(path, 2, *more, "--hang-after", 5), path, **how) as job:
        pids = job.wait_for_ranks()
        job.wait_for_epoch(1)
        os.kill(pids[rank], number)
        # once no process is left
        ended = job.end(code=jobs.HANGING if "resume" in told else jobs.DONE)
    assert re.search(told, ended.err)
    if ended.code == jobs.HANGING:
        jobs.resume(path, "--learners", 1, **learner(2))
    jobs.assert_same_bits(path, alone(*more))
