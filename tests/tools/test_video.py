import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from music_tf.config.settings import MusicConfig, SkillConfig
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs.inspection import load_run
from music_tf.tools import filming, video
from music_tf.tools.gl import working_backend
from music_tf.tools.offscreen import paint
from music_tf.tools.strip import film_strip
from music_tf.tools.video import pages, play, write_film
from tests.kit.saved_run import save_run
from tests.test_rollout import Faulty


def plain(count, size=(16, 8)):
    return [Image.new("RGB", size, (20 * number, 0, 0)) for number in range(count)]


def test_an_mp4_shows_every_state_of_every_episode(tmp_path, capsys):
    save_run(tmp_path)
    out = tmp_path / "new" / "film.mp4"
    play(tmp_path, 2, None, out)
    film = imageio.get_reader(out)
    # 31 states and 0.6 s of the last at 10 frames a second; two tiles of 480 and a gap of 4;
    # title 26, gap 4, tile 480, caption 23, and one to make it even.
    assert film.count_frames() == 37
    assert film.get_meta_data()["size"] == (964, 534)
    assert film.get_meta_data()["fps"] == 10
    assert film.get_meta_data()["pix_fmt"].startswith("yuv420p")
    assert capsys.readouterr().out.endswith(f"{out}\n")
    assert [path.name for path in out.parent.iterdir()] == ["film.mp4"]


def test_a_gif_lasts_as_long_as_its_episodes(tmp_path):
    save_run(tmp_path)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (320, 374)
        milliseconds = 0
        for number in range(film.n_frames):
            film.seek(number)
            milliseconds += film.info["duration"]
    assert milliseconds == 37 * 100


def test_skills_stand_side_by_side(tmp_path):
    save_run(tmp_path, skills=3)
    play(tmp_path, 2, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        # Three columns of 320 // 1 and two rows: 640 // 2 = 320.
        assert film.size == (3 * 320 + 2 * 4, 26 + 2 * (4 + 320 + 23))


def test_the_reward_is_drawn_below_each_picture(tmp_path):
    save_run(
        tmp_path, "sac_diayn", skills=2, rewards={"music": MusicConfig(), "skill": SkillConfig()}
    )
    play(tmp_path, 1, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        # Between picture and caption, for each reward, a line of 20 and a curve of 320 // 9.
        assert film.size == (2 * 320 + 4, 26 + 4 + 320 + 2 * (20 + 35) + 23 + 1)
        first = np.asarray(film.convert("RGB"))
        film.seek(20)
        later = np.asarray(film.convert("RGB"))
    curve = slice(26 + 4 + 320 + 20, 26 + 4 + 320 + 20 + 35)
    assert (first[curve] != later[curve]).any()


def test_an_episode_that_was_spoiled_is_drawn_as_it_went_in_the_end(tmp_path, monkeypatch):
    save_run(tmp_path)
    loaded = load_run(tmp_path, environments=2)
    loaded.trainer.envs = Faulty(2, {1: 1})
    takes = []

    def painted(env_id, take, variables):
        takes.append(take)
        return paint(env_id, take, variables)

    monkeypatch.setattr(filming, "paint", painted)
    assert len(list(filming.film(loaded, [filming.Shot(0, 0), filming.Shot(1, 0)], {}))) == 31
    (_, seeds, _), (_, (again,), _) = loaded.trainer.envs.resets
    assert takes[0].seeds.tolist() == [seeds[0], again] == [seeds[0], seeds[1] + 1]
    assert takes[0].goals.size == 0  # seeds bring their own


def test_a_run_with_a_pinned_skill_shows_that_one(tmp_path):
    save_run(tmp_path, "sac_diayn_finetune", skills=3, pinned_skill=2)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (320, 26 + 4 + 320 + 23 + 1)


def test_a_film_of_several_pages_has_one_size(tmp_path, monkeypatch):
    monkeypatch.setattr(video, "_MOST_SKILLS", 2)
    monkeypatch.setattr(video, "_MOST_ROWS", 2)
    monkeypatch.setattr(video, "_LARGEST_TILE", {".gif": 32, ".mp4": 32})
    save_run(tmp_path, skills=3)
    play(tmp_path, 1, None, tmp_path / "film.gif")
    play(tmp_path, 5, 0, tmp_path / "film.mp4")
    # Two pages of 31 states and six more pictures each: skills 0 and 1, then 2.
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (2 * 32 + 4, 26 + 4 + 32 + 23 + 1)
        milliseconds = 0
        for number in range(film.n_frames):
            film.seek(number)
            milliseconds += film.info["duration"]
        last = np.asarray(film.convert("RGB"))
    assert milliseconds == 2 * 37 * 100
    assert (last[30:85, 36:] > 250).all()
    assert (last[30:85, :32] < 50).any()
    # Again two, of four episodes and of one.
    assert imageio.get_reader(tmp_path / "film.mp4").count_frames() == 2 * 37


def test_a_picture_says_skill_episode_and_step():
    shot, view = filming.Shot(4, 2), filming.View(np.zeros((1, 1, 3), np.uint8), 7, False)
    assert video.caption(shot, view, 50, 3) == "skill 2   episode 5   step 7/50"
    assert video.caption(shot, view, 50, 1) == "episode 5   step 7/50"


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
def test_a_skill_that_the_run_does_not_have_is_refused(tmp_path, skills, asked, text):
    save_run(tmp_path, skills=skills)
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
    with Image.open(tmp_path / "film.gif") as film:
        film.seek(1)
        assert film.convert("RGB").getpixel((5, 5)) == (0, 200, 0)


def test_a_strip_is_a_row_of_evenly_spaced_states(tmp_path):
    save_run(tmp_path)
    film_strip(tmp_path, tmp_path / "strip.png", episode=2, frames=4)
    with Image.open(tmp_path / "strip.png") as strip:
        assert strip.size == (4 * 240 + 3 * 4, 240 + 23 + 1)


def test_a_strip_has_a_row_for_each_skill(tmp_path):
    save_run(tmp_path, "sac_diayn", skills=3)
    film_strip(tmp_path, tmp_path / "strip.png", frames=4)
    with Image.open(tmp_path / "strip.png") as strip:
        height = 240 + (20 + 240 // 9) + 23
        assert strip.size == (4 * 240 + 3 * 4, 3 * (height + 4) - 4 + 1)
    film_strip(tmp_path, tmp_path / "one.png", frames=4, skill=2)
    with Image.open(tmp_path / "one.png") as strip:
        assert strip.size[1] == height + height % 2


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
        film_strip(tmp_path, tmp_path / "strip.png", **options)


def test_fetch_is_drawn_although_tensorflow_is_loaded_here(tmp_path):
    if working_backend() is None:
        pytest.skip("no OpenGL library draws here")
    save_run(tmp_path, "ddpg_music", env_id="FetchPush-v4")
    film_strip(tmp_path, tmp_path / "strip.png", frames=2)
    with Image.open(tmp_path / "strip.png") as strip:
        pixels = np.asarray(strip)[:240, :240].reshape(-1, 3)
    white = (pixels > 250).all(axis=1).mean()  # the table
    blue = (pixels[:, 2] > 150) & (pixels[:, 0] < 100)  # the upper arm
    assert white > 0.05
    assert blue.mean() > 0.005
