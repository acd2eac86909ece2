import dataclasses
import os
import subprocess
import sys

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from music_tf import rollout
from music_tf.config.fields import with_fields
from music_tf.config.settings import MusicConfig, SkillConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.process import Probe
from music_tf.runs.inspection import load_run
from music_tf.runs.judging import Trace
from music_tf.tools import film
from music_tf.tools.doctor import working_backend
from music_tf.tools.film import (
    Shot,
    View,
    caption,
    drawing_variables,
    pages,
    play,
    reward_panel,
    rewards_along,
    sheet,
    strip,
    tile,
    write_film,
)
from tests.kit.saved_run import save_run, small_config, write_config
from tests.test_rollout import Faulty

TOY = "music_tf/PointPush-v0"
GREEN = np.full((10, 20, 3), (0, 255, 0), np.uint8)
WIDTH, STEPS = 246, 4  # less 6 on either side, that is 234 for 4 steps: about 58 each
STEP_CENTRES = [6 + round(234 * (step + 0.5) / STEPS) for step in range(STEPS)]
ALONE = """
import sys
from pathlib import Path
from music_tf.cli import run_verb
from music_tf.tools.film import strip
if sys.argv[1] == "strip":
    strip(*map(Path, sys.argv[2:]), frames=2)
else:
    run_verb(sys.argv[1:])
print("tensorflow" in sys.modules)
"""


def alone(*words):
    """Draws in a process of its own, which says at the end whether it has loaded TensorFlow."""
    command = [sys.executable, "-c", ALONE, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.stdout.splitlines()[-1:] == ["False"], done.stderr


def plain(count, size=(16, 8)):
    return [Image.new("RGB", size, (20 * number, 0, 0)) for number in range(count)]


def test_an_mp4_shows_every_state_of_every_episode(tmp_path, capsys):
    save_run(tmp_path)
    out = tmp_path / "new" / "film.mp4"
    play(tmp_path, 2, None, out)
    shown = imageio.get_reader(out)
    # 31 states and 0.6 s of the last at 10 frames a second; two tiles of 480 and a gap of 4;
    # title 26, gap 4, tile 480, caption 23, and one to make it even.
    assert shown.count_frames() == 37
    assert shown.get_meta_data()["size"] == (964, 534)
    assert shown.get_meta_data()["fps"] == 10
    assert shown.get_meta_data()["pix_fmt"].startswith("yuv420p")
    assert capsys.readouterr().out.endswith(f"{out}\n")
    assert [path.name for path in out.parent.iterdir()] == ["film.mp4"]


def test_a_gif_lasts_as_long_as_its_episodes(tmp_path):
    save_run(tmp_path)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as shown:
        assert shown.size == (320, 374)
        milliseconds = 0
        for number in range(shown.n_frames):
            shown.seek(number)
            milliseconds += shown.info["duration"]
    assert milliseconds == 37 * 100


def test_skills_stand_side_by_side(tmp_path):
    save_run(tmp_path, skills=3)
    play(tmp_path, 2, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as shown:
        # Three columns of 320 // 1 and two rows: 640 // 2 = 320.
        assert shown.size == (3 * 320 + 2 * 4, 26 + 2 * (4 + 320 + 23))


def test_the_reward_is_drawn_below_each_picture_by_a_process_without_tensorflow(tmp_path):
    save_run(
        tmp_path, "sac_diayn", skills=2, rewards={"music": MusicConfig(), "skill": SkillConfig()}
    )
    alone("play", tmp_path, "--episodes", "1", "--out", tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as drawn:
        # Between picture and caption, for each reward, a line of 20 and a curve of 320 // 9.
        assert drawn.size == (2 * 320 + 4, 26 + 4 + 320 + 2 * (20 + 35) + 23 + 1)
        first = np.asarray(drawn.convert("RGB"))
        drawn.seek(20)
        later = np.asarray(drawn.convert("RGB"))
    curve = slice(26 + 4 + 320 + 20, 26 + 4 + 320 + 20 + 35)
    assert (first[curve] != later[curve]).any()


def replayed(tmp_path, monkeypatch, change=lambda played: played, **changes):
    """Episodes 0 and 1 of a run as they were played, then changed, and the views of them."""
    save_run(tmp_path, **changes)
    loaded = load_run(tmp_path, environments=2)
    played = change(loaded.evaluation.play(loaded.policy, 2))
    monkeypatch.setattr(rollout, "play", lambda *given: played)
    return played, film.film(loaded, [Shot(0, 0), Shot(1, 0)])


def test_pictures_are_those_of_the_states_that_were_played(tmp_path, monkeypatch):
    played, views = replayed(
        tmp_path, monkeypatch, lambda played: played._replace(length=np.array([1, 2]))
    )
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


def test_the_goal_that_was_played_is_the_one_that_is_drawn(tmp_path, monkeypatch):
    (own, _), *_ = replayed(tmp_path / "own", monkeypatch)[1]
    (zero, _), *_ = replayed(tmp_path / "zero", monkeypatch, recipe="ddpg_joint_motion")[1]
    # (0 + 1.5) / 3 of 96 pixels is row and column 48
    assert tuple(zero.image[48, 48]) == (80, 200, 80)
    assert tuple(own.image[48, 48]) != (80, 200, 80)


def test_an_environment_that_does_not_repeat_itself_is_not_filmed(tmp_path, monkeypatch):
    def other(played):
        played.observation[1, 1, 0] += 0.01
        return played

    with pytest.raises(EnvironmentFault, match="do not lead to the same states at step 1"):
        list(replayed(tmp_path, monkeypatch, other)[1])


def test_an_episode_that_was_spoiled_is_drawn_as_it_went_in_the_end(tmp_path):
    save_run(tmp_path)
    envs = Faulty(2, {1: 1})
    envs.render = envs.envs.render
    loaded = load_run(tmp_path, environments=2)
    loaded = dataclasses.replace(loaded, evaluation=loaded.evaluation._replace(envs=envs))
    assert len(list(film.film(loaded, [Shot(0, 0), Shot(1, 0)]))) == 31
    (_, seeds, _), (_, (again,), _), (_, drawn, goals) = envs.resets
    assert drawn == [seeds[0], again] == [seeds[0], seeds[1] + 1]
    assert goals is None  # seeds bring their own


def test_rewards_that_do_not_fit_or_cannot_be_asked_are_a_fault(tmp_path, monkeypatch):
    config = save_run(tmp_path, "sac_diayn", skills=2).config
    write_config(tmp_path, with_fields(config, {"skill.hidden_sizes": (16,)}), "sac_diayn")
    loaded = load_run(tmp_path)
    played = loaded.evaluation.play(loaded.policy, 1)
    with pytest.raises(UsageError, match=r"does not fit config\.json\ndiscriminator/hidden_"):
        rewards_along(loaded, played)
    dead = Probe(-11, "", "Segmentation fault\n")
    monkeypatch.setattr(film, "run_command", lambda *words, **options: dead)
    with pytest.raises(EnvironmentFault, match="cannot be drawn\nSegmentation fault"):
        rewards_along(loaded, played)


def test_a_run_with_a_pinned_skill_shows_that_one(tmp_path):
    save_run(tmp_path, "sac_diayn_finetune", skills=3, pinned_skill=2)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as shown:
        assert shown.size == (320, 26 + 4 + 320 + 23 + 1)


def test_a_film_of_several_pages_has_one_size(tmp_path, monkeypatch):
    monkeypatch.setattr(film, "_MOST_SKILLS", 2)
    monkeypatch.setattr(film, "_MOST_ROWS", 2)
    monkeypatch.setattr(film, "_LARGEST_TILE", {".gif": 32, ".mp4": 32})
    save_run(tmp_path, skills=3)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    play(tmp_path, 5, 0, tmp_path / "film.mp4")
    # Two pages of 31 states and six more pictures each: skills 0 and 1, then 2.
    with Image.open(tmp_path / "film.gif") as shown:
        assert shown.size == (2 * 32 + 4, 26 + 4 + 32 + 23 + 1)
        milliseconds = 0
        for number in range(shown.n_frames):
            shown.seek(number)
            milliseconds += shown.info["duration"]
        last = np.asarray(shown.convert("RGB"))
    assert milliseconds == 2 * 37 * 100
    assert (last[30:85, 36:] > 250).all()
    assert (last[30:85, :32] < 50).any()
    # Again two, of four episodes and of one.
    assert imageio.get_reader(tmp_path / "film.mp4").count_frames() == 2 * 37


def test_a_picture_says_skill_episode_and_step():
    shot, view = Shot(4, 2), View(np.zeros((1, 1, 3), np.uint8), 7, False)
    assert caption(shot, view, 50, 3) == "skill 2   episode 5   step 7/50"
    assert caption(shot, view, 50, 1) == "episode 5   step 7/50"


def test_pages_hold_every_episode_of_every_skill_once():
    for episodes, skills in ((1, [0]), (5, [3]), (17, [0]), (1000, [0]), (9, range(23))):
        shots = [shot for page, _ in pages(episodes, skills) for shot in page]
        assert sorted(shots) == [(e, s) for e in range(episodes) for s in skills]
        assert all(columns <= 10 and len(page) <= 40 for page, columns in pages(episodes, skills))


def test_one_skill_makes_a_square_and_several_make_columns():
    assert [(len(page), columns) for page, columns in pages(4, [0])] == [(4, 2)]
    assert [(len(page), columns) for page, columns in pages(2, range(12))] == [(20, 10), (4, 2)]
    (page, _), *_ = pages(2, [5, 6])
    assert page == ((0, 5), (0, 6), (1, 5), (1, 6))


@pytest.mark.parametrize(
    ("skills", "asked", "text"),
    [(3, 3, r"--skill: expected 0\.\.2, or all; got 3"), (1, 1, "this run has one skill; got 1")],
)
def test_a_skill_that_the_run_does_not_have_is_refused_before_anything_is_loaded(
    tmp_path, skills, asked, text
):
    write_config(tmp_path, small_config(skills=skills))  # there is not even a checkpoint
    with pytest.raises(UsageError, match=text):
        play(tmp_path, 1, asked, tmp_path / "film.mp4")


def test_a_film_has_a_known_ending(tmp_path):
    save_run(tmp_path)
    with pytest.raises(UsageError, match=r"ending in \.mp4 or \.gif, got .*film\.avi"):
        play(tmp_path, 1, None, tmp_path / "film.avi")


def test_a_film_that_breaks_off_leaves_nothing_behind(tmp_path):
    def frames():
        yield from plain(2)
        raise EnvironmentFault("the lights went out")

    for name in ("film.mp4", "film.gif"):
        (tmp_path / name).write_bytes(b"the one before")
        with pytest.raises(EnvironmentFault, match="lights"):
            write_film(tmp_path / name, frames(), 10)
        assert (tmp_path / name).read_bytes() == b"the one before"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_film_that_cannot_be_written_is_a_fault(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match=r"film\.mp4: cannot be written"):
        write_film(tmp_path / "file" / "film.mp4", plain(2), 10)
    save_run(tmp_path)
    with pytest.raises(EnvironmentFault, match="File name too long"):
        play(tmp_path, 1, None, tmp_path / f"{'x' * 300}.gif")


def test_a_gif_has_the_colours_of_its_last_frame_too(tmp_path):
    last = Image.new("RGB", (16, 8), (0, 200, 0))
    write_film(tmp_path / "film.gif", [*plain(1), last], 10)
    with Image.open(tmp_path / "film.gif") as shown:
        shown.seek(1)
        assert shown.convert("RGB").getpixel((5, 5)) == (0, 200, 0)


def test_a_strip_is_a_row_of_evenly_spaced_states(tmp_path):
    save_run(tmp_path)
    strip(tmp_path, tmp_path / "strip.png", episode=2, frames=4)
    with Image.open(tmp_path / "strip.png") as picture:
        assert picture.size == (4 * 240 + 3 * 4, 240 + 23 + 1)


def test_a_strip_has_a_row_for_each_skill_with_what_it_is_paid(tmp_path, monkeypatch):
    save_run(tmp_path, skills=3)
    paid = Trace("skill", np.zeros((3, 30), np.float32), -1.0, 0.0)
    monkeypatch.setattr(film, "rewards_along", lambda loaded, played: [paid])
    strip(tmp_path, tmp_path / "strip.png", frames=4)
    with Image.open(tmp_path / "strip.png") as picture:
        height = 240 + (20 + 240 // 9) + 23
        assert picture.size == (4 * 240 + 3 * 4, 3 * (height + 4) - 4 + 1)
    strip(tmp_path, tmp_path / "one.png", frames=4, skill=2)
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.size[1] == height + height % 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"episode": 0}, "episode: expected a number from 1 on, got 0"),
        ({"frames": 1}, "frames: expected a number from 2 on, got 1"),
        ({"skill": 1}, "--skill: expected 0"),
    ],
)
def test_a_strip_that_makes_no_sense_is_refused(tmp_path, options, text):
    save_run(tmp_path)
    with pytest.raises(UsageError, match=text):
        strip(tmp_path, tmp_path / "strip.png", **options)


def test_fetch_is_drawn_by_a_process_without_tensorflow(tmp_path):
    if working_backend() is None:
        pytest.skip("no OpenGL library draws here")
    save_run(tmp_path, "ddpg_music", env_id="FetchPush-v4")
    alone("strip", tmp_path, tmp_path / "strip.png")
    with Image.open(tmp_path / "strip.png") as picture:
        pixels = np.asarray(picture)[:240, :240].reshape(-1, 3)
    white = (pixels > 250).all(axis=1).mean()  # the table
    blue = (pixels[:, 2] > 150) & (pixels[:, 0] < 100)  # the upper arm
    assert white > 0.05
    assert blue.mean() > 0.005


@pytest.fixture
def no_opengl(monkeypatch):
    monkeypatch.setattr(film, "working_backend", lambda: None)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_opengl")
def test_without_opengl_and_screen_the_packages_are_named():
    with pytest.raises(EnvironmentFault) as fault:
        drawing_variables("FetchPush-v4")
    text = str(fault.value)
    assert text.startswith("FetchPush-v4: nothing can be drawn here")
    assert "apt-get install libegl1 libgl1   (egl)" in text
    assert "apt-get install libosmesa6   (osmesa)" in text
    assert len(text.splitlines()) <= 10


@pytest.mark.usefixtures("no_opengl")
def test_a_screen_will_do(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    assert drawing_variables("FetchPush-v4") == {"MUJOCO_GL": "glfw"}


@pytest.mark.usefixtures("no_opengl")
@pytest.mark.parametrize("env_id", [TOY, "mine:Own-v0"])
def test_what_may_not_need_opengl_is_tried_without(env_id):
    assert drawing_variables(env_id) == {}


def test_the_backend_that_draws_is_chosen(monkeypatch):
    monkeypatch.setattr(film, "working_backend", lambda: "osmesa")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    assert drawing_variables("FetchPush-v4") == {"MUJOCO_GL": "osmesa"}
    assert "MUJOCO_GL" not in os.environ


def ink(picture):
    """How many pixels are darker than half."""
    return int((np.asarray(picture).max(axis=-1) < 128).sum())


def test_a_tile_keeps_the_shape_of_its_picture_and_adds_a_caption():
    small = tile(GREEN, 40, "")
    assert small.size == (40, 20 + 23)
    assert small.getpixel((39, 19)) == (0, 255, 0)
    assert small.getpixel((39, 20)) == (255, 255, 255)


def test_a_caption_is_written_below_the_picture():
    assert ink(tile(GREEN, 200, "episode 1")) > 100
    assert ink(tile(GREEN, 200, "")) == 0


def test_a_long_caption_stays_inside():
    strip = np.asarray(tile(GREEN, 160, "skill 9   episode 1000   step 50/50"))[80:]
    assert (strip[:, [0, -1]] == 255).all()
    assert (strip < 128).any()


def test_a_sheet_has_even_sides_and_leaves_nothing_out():
    tiles = [Image.new("RGB", (11, 7), (number, 0, 0)) for number in (1, 2, 3)]
    whole = sheet(tiles, 2)
    assert whole.size == (2 * 11 + 4, 2 * 7 + 4)
    assert [whole.getpixel(at)[0] for at in ((0, 0), (15, 0), (0, 11))] == [1, 2, 3]
    assert sheet(tiles[:1], 1).size == (12, 8)


def test_a_title_stands_above():
    tiles = [Image.new("RGB", (300, 20), (255, 255, 255))]
    titled = sheet(tiles, 1, "what is shown")
    assert titled.size == (300, 26 + 4 + 20)
    assert ink(titled.crop((0, 0, 300, 26))) > 100


def panel(values, step, lowest=0.0, highest=1.0, *, name="music", number=0):
    trace = Trace(name, np.float32(values), lowest, highest)
    return np.asarray(reward_panel(trace, number, step, STEPS, WIDTH)).astype(int)


def columns(picture):
    """The columns of pixels in the middle of each step, below the line of text."""
    return [picture[20:, at] for at in STEP_CENTRES]


def coloured(column):
    """How many pixels are neither paper nor the grey of base line and cursor."""
    return int((np.ptp(column, axis=-1) > 30).sum())


def test_a_reward_is_as_high_as_it_pays():
    empty, half, full, beyond = map(coloured, columns(panel([0.0, 0.5, 1.0], 3)))
    assert empty <= 1
    assert beyond == 0  # the episode is over
    assert full >= 17
    assert half == pytest.approx(full / 2, abs=1.5)


def test_rewards_that_are_costs_stand_on_their_lowest_value():
    empty, half, full, _ = map(coloured, columns(panel([-1.0, -0.5, 0.0], 3, -1.0, 0.0)))
    assert (empty <= 1, full >= 17) == (True, True)
    assert half == pytest.approx(full / 2, abs=1.5)


def test_what_is_still_to_come_is_pale():
    paid, to_come, *_ = columns(panel([1.0, 1.0, 1.0, 1.0], 1))
    assert paid[10].max() - paid[10].min() > 100
    assert to_come[10].min() > 180
    assert coloured(to_come) == pytest.approx(coloured(paid), abs=1)


def test_an_unbounded_reward_fills_the_height():
    low, _, high, _ = map(coloured, columns(panel([-30.0, 0.0, 30.0], 3, -np.inf, np.inf)))
    assert (low <= 1, high >= 17) == (True, True)


def test_a_reward_that_never_changes_is_drawn_without_a_range():
    flat = panel([2.0, 2.0], 1, -np.inf, np.inf)
    assert flat.shape == panel([1.0], 0).shape


def test_the_reward_of_the_last_step_is_written_above():
    def text(*arguments, **named):
        return panel(*arguments, **named)[:20]

    assert (text([0.25, 0.75], 1) != text([0.25, 0.75], 2)).any()
    assert (text([0.25, 0.75], 2) == text([0.99, 0.75], 2)).all()
    assert (text([0.25], 1) == text([0.25], 4)).all()  # over, and so the last one stays
    assert (text([0.25], 1) != text([0.25], 1, name="skill")).any()


def test_each_reward_of_a_run_has_a_colour_of_its_own_whatever_it_is_called():
    def colour(number, name="novelty"):
        return tuple(panel([1.0], 1, name=name, number=number)[30, STEP_CENTRES[0]])

    assert len({colour(number) for number in range(6)}) == 6
    assert colour(1) == colour(1, name="music") == colour(7)
