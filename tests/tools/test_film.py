import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from music_tf import rollout
from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.envs.viewer import WindowClosedError
from music_tf.errors import EXIT_STOPPED, EnvironmentFault, UsageError
from music_tf.process.children import Probe
from music_tf.recipes.music import MusicConfig
from music_tf.recipes.skills import SkillConfig
from music_tf.runs.comparison import Trace
from music_tf.runs.loaded_run import load_run
from music_tf.storage.run_paths import AGENTS, agents
from music_tf.tools import film
from music_tf.tools.doctor import working_backend
from music_tf.tools.film import (
    Aim,
    Shot,
    View,
    curve,
    drawing_variables,
    play,
    sheets_of,
    strip_of,
    tile,
)
from music_tf.training.evaluation import random_actions
from tests.kit.cases import cases
from tests.kit.one_by_one import trainer_of
from tests.kit.saved_run import along, in_a_ball, save_checkpoint, save_run, write_config
from tests.kit.small import go_on
from tests.kit.started import python
from tests.test_rollout import Faulty

pytestmark = pytest.mark.thorough

TOY = "music_tf/PointPush-v0"
CAPTION, GAP = 23, 4
WIDTH, STEPS = 246, 4  # less 6 on either side, that is 234 for 4 steps: about 58 each
STEP_CENTRES = [6 + round(234 * (step + 0.5) / STEPS) for step in range(STEPS)]
ALONE = """
import sys
from music_tf.cli import run_verb
run_verb(sys.argv[1:])
print("tensorflow" in sys.modules)
"""


def every_step(lengths):
    return np.arange(lengths.max() + 1)


def alone(*words, loads=False):
    """Runs a verb in a process of its own, which says at the end whether it loaded TensorFlow."""
    done = python(ALONE, *words, timeout=200)
    assert done.stdout.splitlines()[-1:] == [str(loads)], done.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, one of skills, of a pinned one, of continuous ones; nothing here changes them."""
    folder = tmp_path_factory.mktemp("runs")
    save_run(folder / "plain")
    save_run(folder / "skilled", skills=3)
    save_run(folder / "pinned", "sac_diayn_finetune", skills=3, pinned_skill=2)
    save_run(folder / "continuous", condition=ConditionConfig(kind="gaussian", size=3))
    return folder


@pytest.fixture
def written(monkeypatch):  # the lines of text that are drawn, in order
    texts, line = [], film.line

    def noted(text, *arguments, **named):
        texts.append(text)
        return line(text, *arguments, **named)

    monkeypatch.setattr(film, "line", noted)
    return texts


def gif(path):  # the size of a gif, how many milliseconds it lasts, and its first and last picture
    with Image.open(path) as shown:
        first, milliseconds = np.asarray(shown.convert("RGB")), 0
        for number in range(shown.n_frames):
            shown.seek(number)
            milliseconds += shown.info["duration"]
        return shown.size, milliseconds, first, np.asarray(shown.convert("RGB"))


def above(run, width):  # the height of the heading of a film
    loaded = load_run(run, environments=1)
    loaded.envs.close()
    return sum(row.height for row in film.heading(loaded, width))


# Films.


@cases(
    ("run", "aim", "said"),
    ("task", Aim(), "ddpg on music_tf/PointPush-v0 after 100 steps, told where to go"),
    ("ddpg_joint_motion", None, "ddpg_joint_motion on music_tf/PointPush-v0 after 100 steps, w"),
    ("agent", None, agents()["push"]["does"][:-1]),
)
def test_a_heading_says_what_one_sees_and_below_where_it_is_from(tmp_path, written, run, aim, said):
    save_run(tmp_path, *([] if run == "task" else ["ddpg_joint_motion"]))
    loaded = load_run(AGENTS / "push" if run == "agent" else tmp_path, environments=1)
    loaded.envs.close()
    film.heading(loaded, 2000, aim)
    assert written[0].startswith(said)
    assert written[1] == loaded.title
    assert len(film.heading(loaded, 200)) > 4  # narrow ones have more lines


def test_an_mp4_shows_every_episode_and_what_it_shows_is_said(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(LockstepEnvs, "steps_per_second", 125.0)
    out = tmp_path / "new" / "film.mp4"
    play(runs / "skilled", out, range(1), [0, 2])
    shown = imageio.get_reader(out)
    # Steps 0, 5 and so on to 30, and 1.2 s of the last one; one pixel to make it even.
    assert shown.count_frames() == 37
    width = 2 * 480 + GAP
    height = above(runs / "skilled", width) + GAP + 480 + CAPTION + 1
    assert shown.get_meta_data()["size"] == (width, height)
    assert shown.get_meta_data()["fps"] == 25
    assert shown.get_meta_data()["pix_fmt"].startswith("yuv420p")
    assert [path.name for path in out.parent.iterdir()] == ["film.mp4"]
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "filming 2 episodes of up to 30 steps: one step in 5, 25 frames a second; "
        "episodes are played first"
    )
    assert re.fullmatch(f"37 frames, [0-9]+ kB: {out}", last)


@cases(
    ("run", "episodes", "across", "down"),
    ("skilled", 2, 3, 2),
    ("pinned", 1, 1, 1),
    ("continuous", 2, 2, 1),
)
def test_a_gif_shows_skills_side_by_side_to_the_end(runs, tmp_path, run, episodes, across, down):
    play(runs / run, tmp_path / "film.gif", range(episodes))
    size, milliseconds, *_ = gif(tmp_path / "film.gif")
    height = above(runs / run, size[0]) + down * (GAP + 320 + CAPTION)
    assert size == (across * (320 + GAP) - GAP, height + height % 2)
    assert milliseconds == 43 * 100


def test_a_film_of_a_run_that_has_learned_few_of_its_skills_has_room_for_more_episodes(tmp_path):
    trainer = trainer_of(skills=2, epochs=4)
    write_config(tmp_path, trainer.config, "sac_disk")
    for _ in range(2):
        trainer.run_epoch(go_on)
    save_checkpoint(tmp_path, trainer, 2)
    play(tmp_path, tmp_path / "film.gif", range(9))  # of two skills a sheet has four episodes, so 8
    across, *_ = gif(tmp_path / "film.gif")[0]
    assert across == 3 * (640 // 3 // 2 * 2 + GAP) - GAP


@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
def test_a_film_that_is_told_to_stop_leaves_no_file(runs, tmp_path, name):
    made, temporary = tmp_path / "made", tmp_path / "temporary"
    temporary.mkdir()
    words = ["play", str(runs / "skilled"), "--episodes", "1000", "--out", str(made / name)]
    with subprocess.Popen(
        [sys.executable, "-m", "music_tf", *words],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        line = next(text for text in process.stdout if text.startswith("frame "))
        assert list(made.iterdir())
        process.terminate()
        assert process.wait(timeout=60) == EXIT_STOPPED
    assert line.startswith("frame 4 of ")
    assert (list(made.iterdir()), list(temporary.iterdir())) == ([], [])


def test_episodes_of_continuous_conditions_are_those_of_evaluation(runs, monkeypatch):
    loaded, played = load_run(runs / "continuous", environments=2), []
    wanted = loaded.evaluation.play(loaded.policy, 3).skill[1:]
    monkeypatch.setattr(film, "rewards_along", lambda _, episodes: played.append(episodes) or [])
    list(film.film(loaded, [Shot(1, None), Shot(2, None)], every_step))
    np.testing.assert_array_equal(played[0].skill, wanted)


def test_as_many_frames_are_counted_as_the_file_has_and_the_last_one_has_its_colours(tmp_path):
    dark, green = (Image.new("RGB", (16, 8), colour) for colour in ((20, 0, 0), (0, 200, 0)))
    images = [dark, dark, green, green, green]
    assert film.write_film(tmp_path / "film.gif", iter(images), 10) == 2  # a longer one for equals
    _, milliseconds, first, last = gif(tmp_path / "film.gif")
    assert (milliseconds, tuple(last[5, 5]), first[5, 5].max()) == (500, (0, 200, 0), 20)
    assert film.write_film(tmp_path / "film.mp4", iter(images), 10) == 5
    assert imageio.get_reader(tmp_path / "film.mp4").count_frames() == 5


def test_a_gif_keeps_the_colour_of_a_small_goal(tmp_path):
    shades = np.random.default_rng(0).integers(0, 256, (320, 320, 1), np.uint8)
    pixels = shades * np.array([0.4, 1.0, 0.6]) + [20.0, 0.0, 0.0]
    pixels[100:106, 200:206] = 230.0, 10.0, 10.0
    image = Image.fromarray(pixels.astype(np.uint8))
    assert film.write_film(tmp_path / "film.gif", iter([image]), 10) == 1
    red, green, blue = (int(part) for part in gif(tmp_path / "film.gif")[3][103, 203])
    assert red > 190
    assert max(green, blue) < 60


def test_sheets_hold_every_episode_of_every_skill_once_in_a_square_or_in_columns():
    config = SimpleNamespace(agent=SimpleNamespace(inference=None))
    for episodes, skills in ((1, [0]), (5, [3]), (17, [0]), (1000, [0]), (9, range(23))):
        sheets = sheets_of(config, range(episodes), skills)
        shots = [shot for sheet in sheets for shot in sheet.shots]
        assert sorted(shots) == [(e, s, False) for e in range(episodes) for s in skills]
        assert all(sheet.columns <= 10 and len(sheet.shots) <= 40 for sheet in sheets)
    for episodes, skills, expected in (
        (4, [0], [(4, 2)]),
        (2, range(12), [(12, 4), (12, 4)]),
        (1, range(50), [(40, 7), (10, 7)]),
        (5, range(10), [(40, 10), (10, 10)]),
    ):
        sheets = sheets_of(config, range(episodes), skills)
        assert [(len(sheet.shots), sheet.columns) for sheet in sheets] == expected
    (sheet,) = sheets_of(config, range(2), [5, 6])
    assert [shot[:2] for shot in sheet.shots] == [(0, 5), (0, 6), (1, 5), (1, 6)]


@cases(
    ("episodes", "skills", "columns", "shots"),
    (1, [4], 2, [(0, 4, False), (0, 4, True)]),
    (2, [4], 2, [(0, 4, False), (1, 4, False), (0, 4, True), (1, 4, True)]),
    (1, [4, 5], 3, [(0, 4, False), (0, 5, False), (0, 4, True)]),
)
def test_random_actions_are_below_a_policy_or_beside_its_skills(episodes, skills, columns, shots):
    config = SimpleNamespace(agent=SimpleNamespace(inference=None))
    (sheet,) = sheets_of(config, range(episodes), skills, beside="random")
    assert (sheet.columns, list(sheet.shots)) == (columns, shots)


def test_random_actions_are_those_of_evaluations_from_the_same_start(runs, monkeypatch):
    loaded, shown, own = load_run(runs / "plain", environments=2), [], rollout.play
    monkeypatch.setattr(rollout, "play", lambda *of: shown.append(own(*of)) or shown[0])
    views = list(film.film(loaded, [Shot(1, 0), Shot(1, 0, True)], every_step))
    np.testing.assert_array_equal(shown[0].action[1], random_actions(loaded.envs.spec)(1))
    alone = loaded.evaluation.play(loaded.policy, 2)
    np.testing.assert_allclose(shown[0].action[0], alone.action[1], atol=1e-6)
    assert [view.caption[:14] for view in views[0]] == ["policy   episo", "random actions"]
    np.testing.assert_array_equal(views[0][0].image, views[0][1].image)
    assert (views[-1][0].image != views[-1][1].image).any()
    loaded.envs.close()


def test_a_window_shows_a_policy_in_real_time_until_it_is_closed(runs, monkeypatch, capsys):
    shown = []

    def render(envs, index):
        shown.append(time.monotonic())
        if len(shown) == 20:  # in the second episode; every other one of 31 states is shown
            raise WindowClosedError
        return np.zeros((1, 1, 3), np.uint8)

    monkeypatch.setattr("glfw.init", lambda: True)
    with pytest.raises(UsageError, match=f"--live: {TOY} opens no window"):
        film.show(runs / "plain", range(1))
    modes = {"render_modes": ["human"], "render_fps": 50}
    monkeypatch.setattr(type(make_environment(TOY).unwrapped), "metadata", modes)
    monkeypatch.setattr(LockstepEnvs, "render", render)
    film.show(runs / "plain", range(3))
    assert capsys.readouterr().out.split("\n")[:-1] == ["episode 1", "episode 2"]
    assert len(shown) == 20
    assert shown[15] - shown[0] == pytest.approx(30 / 50, abs=0.2)


def test_a_window_needs_a_screen(monkeypatch, runs):
    monkeypatch.setattr("glfw.init", lambda: False)
    with pytest.raises(EnvironmentFault, match="--live: there is no screen"):
        film.show(runs / "plain", range(1))


def test_fetch_opens_a_window_on_a_screen(tmp_path):
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no virtual screen")
    save_run(tmp_path, "ddpg_music", env_id="FetchPush-v4")
    screen = subprocess.Popen(["Xvfb", "-displayfd", "1"], stdout=-1, stderr=-3, text=True)
    try:
        seen = os.environ | {"DISPLAY": f":{screen.stdout.readline().strip()}"}
        words = ["play", tmp_path, "--live", "--episodes", "1", "--env.max-episode-steps", "3"]
        done = python(ALONE, *words, timeout=200, env=seen)
        assert done.stdout.splitlines() == ["episode 1", "False"], done.stderr
    finally:
        screen.kill()
        screen.wait()


@cases(
    ("run", "asked", "text"),
    ("skilled", [3], r"expected 0\.\.2, or all; got 3"),
    ("skilled", [0, 4], r"expected 0\.\.2, or all; got 4"),
    ("plain", [1], "has one skill; got 1"),
    ("continuous", [1], "expected none, .* gaussian conditions.*got 1"),
)
def test_a_skill_that_the_run_does_not_have_is_refused_before_anything_is_loaded(
    runs, tmp_path, monkeypatch, run, asked, text
):
    monkeypatch.setattr(film, "load_run", lambda *given: pytest.fail("it is loaded"))
    with pytest.raises(UsageError, match=f"--skill: .*{text}"):
        play(runs / run, tmp_path / "film.mp4", range(1), asked)


# What is drawn: episodes that have been played.


def replayed(run, monkeypatch, change=lambda played: played, choose=every_step):
    """Episodes 0 and 1 of a run as they were played, then changed, and the views of them."""
    loaded = load_run(run, environments=2)
    played = change(loaded.evaluation.play(loaded.policy, 2))
    monkeypatch.setattr(rollout, "play", lambda *given: played)
    return played, film.film(loaded, [Shot(0, 0), Shot(1, 0)], choose)


def test_pictures_are_those_of_the_states_that_were_played(runs, monkeypatch):
    def shortened(played):
        return played._replace(length=np.array([1, 2]))

    played, views = replayed(runs / "plain", monkeypatch, shortened)
    drawn = [[view.image for view in both] for both in views]
    envs = LockstepEnvs(TOY, 2)
    envs.reset([0, 1], played.seed.tolist())
    np.testing.assert_array_equal(drawn[0], [envs.render(0), envs.render(1)])
    envs.step(played.action[:, 0], [0, 1])
    np.testing.assert_array_equal(drawn[1], [envs.render(0), envs.render(1)])
    assert len(drawn) == 3
    envs.step(played.action[1:, 1], [1])
    np.testing.assert_array_equal(drawn[2][0], drawn[1][0])  # over, and so stands still
    np.testing.assert_array_equal(drawn[2][1], envs.render(1))


def test_the_goal_that_was_played_is_the_one_that_is_drawn(runs, tmp_path, monkeypatch):
    save_run(tmp_path, "ddpg_joint_motion")
    (own, _), *_ = replayed(runs / "plain", monkeypatch)[1]
    (zero, _), *_ = replayed(tmp_path, monkeypatch)[1]
    # (0 + 1.5) / 3 of 96 pixels is row and column 48
    assert tuple(zero.image[48, 48]) == (80, 200, 80)
    assert tuple(own.image[48, 48]) != (80, 200, 80)


def test_an_environment_that_does_not_repeat_itself_is_not_filmed(runs, monkeypatch):
    def other(played):
        seen = played.observation.copy()
        seen[1, 1, 0] += 0.01
        return played._replace(observation=seen)

    with pytest.raises(EnvironmentFault, match="do not lead to the same states at step 1"):
        list(replayed(runs / "plain", monkeypatch, other)[1])


def test_an_episode_that_was_spoiled_is_drawn_as_it_went_in_the_end(runs):
    envs = Faulty(2, {1: 1})
    loaded = load_run(runs / "plain", environments=2)
    loaded = dataclasses.replace(loaded, evaluation=loaded.evaluation._replace(envs=envs))
    assert len(list(film.film(loaded, [Shot(0, 0), Shot(1, 0)], every_step))) == 31
    (_, seeds, _), (_, (again,), _), (_, drawn, goals) = envs.resets
    assert drawn == [seeds[0], again] == [seeds[0], seeds[1] + 1]
    assert goals is None  # seeds bring their own


@pytest.fixture(scope="module")
def aimed(tmp_path_factory):
    """A run with an embedding of the disc's place, and one of skills whose ends are known."""
    folder = tmp_path_factory.mktemp("aimed")
    save_run(folder / "embedded", "sac_metra", **along("sphere", 2))
    save_run(folder / "speedy", "sac_metra", **in_a_ball(2))
    save_run(folder / "skilled", "sac_diayn", skills=3)
    ends = [[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
    each = [{"skill": skill, "end": end} for skill, end in enumerate(ends)]
    measured = {"checkpoint": {"epoch": 1, "env_steps": 100}, "each": each}
    (folder / "skilled/skills.json").write_text(json.dumps(measured))
    return folder


def is_drawn_at(image, x, y):
    """Whether the toy's goal is: (x + 1.5) / 3 and (1.5 - y) / 3 of 96 pixels."""
    return tuple(image[round(32.0 * (1.5 - y)), round(32.0 * (x + 1.5))]) == (80, 200, 80)


@cases(("name", "place"), ("embedded", (1.25, 1.0)), ("skilled", (1.25, 1.0, 0)))
def test_a_place_to_reach_is_drawn_as_the_goal_and_written_below(aimed, name, place):
    loaded = load_run(aimed / name, environments=2)
    *_, last = film.film(loaded, [Shot(0, None), Shot(1, None)], every_step, Aim(place))
    for view in last:
        assert is_drawn_at(view.image, 1.25, 1.0)
        assert "   to 1.25 1.00" in view.caption
        assert view.traces == []
    loaded.envs.close()


def test_the_environments_own_goals_are_drawn_while_the_policy_sees_zeros(aimed, monkeypatch):
    loaded = load_run(aimed / "embedded", environments=2)
    seen, own = [], type(loaded.saved.snapshot).act

    def watched(snapshot, observation, goal, skill, noise):
        seen.append((goal, skill))
        return own(snapshot, observation, goal, skill, noise)

    monkeypatch.setattr(type(loaded.saved.snapshot), "act", watched)
    *_, last = film.film(loaded, [Shot(0, None), Shot(1, None)], every_step, Aim())
    goals = [member.environment.unwrapped.goal for member in loaded.envs._members]
    for view, goal in zip(last, goals, strict=True):
        assert np.abs(goal[:2]).max() > 0.0
        assert view.caption.endswith("step 30/30")
        assert (view.image == (80, 200, 80)).all(axis=-1).any()
    assert not np.any([goal for goal, _ in seen])
    assert len(np.unique([skill[0] for _, skill in seen], axis=0)) > 3
    loaded.envs.close()


@cases(
    ("measured", "moves"),
    ({"zero_shot/stop": 1e6}, False),
    ({"zero_shot/stop": "far"}, True),
    (None, True),
)
def test_a_film_stops_at_the_goal_as_was_measured_of_the_same_checkpoint(aimed, measured, moves):
    checkpoint = {"epoch": 1, "env_steps": 100}
    path = aimed / "embedded/evaluation.json"
    for epoch, expected in ((1, moves), (2, True)):
        written = {"checkpoint": checkpoint | {"epoch": epoch}, "env_kwargs": {}}
        written |= {"zero_shot": {"ours": measured}}
        path.write_text(json.dumps(written))
        loaded = load_run(aimed / "embedded", environments=1)
        first, *_, last = film.film(loaded, [Shot(0, None)], every_step, Aim())
        assert (first[0].image != last[0].image).any() == expected
        loaded.envs.close()
    path.unlink()


def test_a_goal_that_moves_is_drawn_where_it_is_and_its_path_is_drawn_too(aimed, monkeypatch):
    loaded = load_run(aimed / "speedy", environments=2)
    drawn, render = [], LockstepEnvs.render
    monkeypatch.setattr(LockstepEnvs, "render", lambda *of: drawn.append(of[1:]) or render(*of))
    shown = list(film.film(loaded, [Shot(0, None), Shot(1, None)], every_step, Aim(path="circle")))
    assert [index for index, *_ in drawn] == [0, 1] * 31
    for step, views in enumerate(shown):
        for index, goal, path, way in drawn[2 * step : 2 * step + 2]:
            np.testing.assert_array_equal(goal, path[step])
            assert is_drawn_at(views[index].image, *goal[:2])
            assert len(way) == step + 1
    assert np.linalg.norm(path[1] - path[0]) > 0.0 == path[0][2]
    loaded.envs.close()


@cases(
    ("aim", "text"),
    (
        ("embedded", Aim(path="circle")),
        "--path: expected an agent with speeds, .* --distance.speed",
    ),
    (("speedy", Aim(path="a.csv")), r"--path: .* columns .3, 4.; got 'a.csv'\n.*No such file"),
    (("embedded", Aim((1.0,))), r"--reach: .* expected 2 numbers, for columns \[3, 4\] .* got 1"),
    (("plain", Aim()), "--zero-shot: .*plain cannot be sent to a place: it has no embedding"),
)
def test_a_film_of_a_run_that_nothing_leads_is_refused_before_it_is_announced(
    aimed, runs, tmp_path, capsys, aim, text
):
    run = (runs if aim[0] == "plain" else aimed) / aim[0]
    with pytest.raises(UsageError, match=text):
        play(run, tmp_path / "film.gif", range(1), aim[1])
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


# Strips.


def test_each_episode_of_a_strip_is_spaced_by_its_own_length(runs, monkeypatch):
    image, shown = np.zeros((1, 1, 3), np.uint8), []

    def played(loaded, shots, choose, aim):
        lengths = np.array([2, 30, 4])
        for step in choose(lengths):
            yield [View(image, now) for now in np.minimum(step, lengths)]

    monkeypatch.setattr(film, "film", played)
    monkeypatch.setattr(film, "tile", lambda view, *_: shown.append(view.step) or tile(view, 9, 30))
    strip_of(load_run(runs / "plain", None, 1), [Shot(0, None)] * 3, 4)
    assert shown == [0, 1, 1, 2, 0, 10, 20, 30, 0, 1, 3, 4]


@cases(("run", "skills"), ("plain", ()), ("skilled", ()), ("skilled", [2]), ("skilled", [2, 0]))
def test_a_strip_has_a_row_of_evenly_spaced_states_for_each_skill_with_what_it_is_paid(
    runs, tmp_path, monkeypatch, written, run, skills
):
    acting = skills or {"plain": [0], "skilled": [0, 1, 2]}[run]
    rows = len(acting)
    paid = Trace("skill", np.full((rows, 30), -0.25, np.float32), -1.0, 0.0)
    monkeypatch.setattr(film, "rewards_along", lambda loaded, played: [paid])
    play(runs / run, tmp_path / "strip.png", range(1, 2), skills, frames=4)
    with Image.open(tmp_path / "strip.png") as picture:
        height = rows * (240 + (20 + 240 // 9) + CAPTION + GAP) - GAP
        assert picture.size == (4 * (240 + GAP) - GAP, height + height % 2)
    label = {"plain": "", "skilled": f"skill {acting[0]}   "}[run]
    assert written[:8:2] == ["skill reward", *["skill reward -0.25"] * 3]
    assert written[1:8:2] == [f"{label}episode 2   step {step}/30" for step in (0, 10, 20, 30)]


# What rewards pay.


def test_the_reward_is_drawn_below_each_picture_by_a_process_without_tensorflow(tmp_path):
    save_run(
        tmp_path, "sac_diayn", skills=2, rewards={"music": MusicConfig(), "skill": SkillConfig()}
    )
    alone("play", tmp_path, "--episodes", "1", "--out", tmp_path / "film.gif")
    size, _, first, last = gif(tmp_path / "film.gif")
    # Between picture and caption, for each reward, a line of 20 and a curve of 320 // 9.
    title = above(tmp_path, size[0])
    assert size == (2 * 320 + GAP, title + GAP + 320 + 2 * (20 + 35) + CAPTION + 1)
    drawn = slice(title + GAP + 320 + 20, title + GAP + 320 + 20 + 35)
    assert (first[drawn] != last[drawn]).any()


def test_rewards_that_do_not_fit_or_cannot_be_asked_are_a_fault(tmp_path, monkeypatch):
    config = save_run(tmp_path, "sac_diayn", skills=2).config
    write_config(tmp_path, with_fields(config, {"skill.hidden_sizes": (16,)}), "sac_diayn")
    loaded = load_run(tmp_path)
    played = loaded.evaluation.play(loaded.policy, 1)
    with pytest.raises(UsageError, match=r"does not fit config\.json\ndiscriminator/hidden_"):
        film.rewards_along(loaded, played)
    dead = Probe(-11, "", "Segmentation fault\n")
    monkeypatch.setattr(film, "run_command", lambda *words, **options: dead)
    with pytest.raises(EnvironmentFault, match="cannot be drawn\nSegmentation fault"):
        film.rewards_along(loaded, played)


def coloured(values, step, lowest=0.0, highest=1.0):
    """How many pixels of each step are neither paper nor grey, and the strongest difference."""
    trace = Trace("music", np.float32(values), lowest, highest)
    drawn = np.asarray(curve(trace, "#0068ab", step, STEPS, WIDTH)).astype(int)
    colour = np.ptp(drawn[:, STEP_CENTRES], axis=-1)  # none in the base line and the cursor
    return (colour > 30).sum(axis=0), colour.max(axis=0)


@cases(
    ("values", "lowest", "highest"),
    ([0.0, 0.5, 1.0], 0.0, 1.0),
    ([-1.0, -0.5, 0.0], -1.0, 0.0),  # costs stand on their lowest value
    ([-30.0, 0.0, 30.0], -np.inf, np.inf),  # what nothing bounds fills the height
)
def test_a_curve_is_as_high_as_the_reward_pays(values, lowest, highest):
    (empty, half, full, beyond), _ = coloured(values, 3, lowest, highest)
    assert (empty <= 1, full >= 17) == (True, True)
    assert half == pytest.approx(full / 2, abs=1.5)
    assert beyond == 0  # the episode is over
    assert not coloured([2.0, 2.0], 1, -np.inf, np.inf)[0].any()  # it has no range
    _, (strong, pale, *_) = coloured([1.0] * 4, 1)
    assert (strong > 100, pale < 75) == (True, True)  # what is still to come


# What can be drawn here.


def test_fetch_is_drawn_by_a_process_without_tensorflow(tmp_path):
    if working_backend() is None:
        pytest.skip("no OpenGL library draws here")
    save_run(tmp_path, "ddpg_music", env_id="FetchPush-v4")
    alone("play", tmp_path, "--strip", tmp_path / "strip.png", "--frames", "2")
    with Image.open(tmp_path / "strip.png") as picture:
        pixels = np.asarray(picture)[:240, :240].reshape(-1, 3)
    white = (pixels > 250).all(axis=1).mean()  # the table
    blue = (pixels[:, 2] > 150) & (pixels[:, 0] < 100)  # the upper arm
    assert white > 0.05
    assert blue.mean() > 0.005


@cases(
    ("env_id", "backend", "screen", "variables"),
    ("FetchPush-v4", "osmesa", "", {"MUJOCO_GL": "osmesa"}),
    ("FetchPush-v4", None, ":0", {"MUJOCO_GL": "glfw"}),
    ("FetchPush-v4", None, "", None),
    (TOY, None, "", {}),
    ("mine:Own-v0", None, "", {}),  # may not need OpenGL, and is tried without
)
def test_what_can_be_drawn_here(monkeypatch, env_id, backend, screen, variables):
    monkeypatch.setattr(film, "working_backend", lambda: backend)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    if variables is not None:
        assert drawing_variables(env_id) == variables
        return
    with pytest.raises(EnvironmentFault, match=f"{env_id}: nothing can be drawn here") as fault:
        drawing_variables(env_id)
    assert "apt-get install libegl1 libgl1 (egl), or libosmesa6 (osmesa)" in str(fault.value)
    assert len(str(fault.value).splitlines()) == 3


@cases(
    ("stages", "world", "named"),
    ((), 0, "skill 1   "),
    (({}, {}), 0, "skill 1 in stage 0   "),
    (({}, {}), (0, 1), "skill 1 in stage 1   "),  # each where it was learned
)
def test_a_caption_names_the_stage_of_a_changing_world_for_a_skill(stages, world, named):
    config = SimpleNamespace(
        agent=SimpleNamespace(inference=None),
        acting_skills=(0, 1),
        condition_size=2,
        env=SimpleNamespace(stages=stages),
    )
    loaded = SimpleNamespace(config=config, evaluation=SimpleNamespace(world=world))
    assert film._label(loaded, Shot(0, 1)) == f"{named}episode 1   "
