"""The site of pages is built from links and names that exist, and holds what is promised."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from music_tf import recipes

pytestmark = pytest.mark.thorough

pytest.importorskip("mkdocs", reason="docs.lock is not installed")
ROOT = Path(__file__).parents[1]
SOURCES = ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "docs")
BROKEN = """
[a dead link](nowhere.md), [an unknown heading](music.md#nowhere),
[an unknown name][music_tf.nothing]
"""


def build(folder, site):  # builds the site of a folder; returns the exit status and what was said
    program = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        program, cwd=folder, env=variables, capture_output=True, text=True, timeout=250, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    code, said = build(ROOT, folder)
    assert code == 0, said
    return folder


@pytest.fixture
def copied(tmp_path):
    for name in SOURCES:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "music_tf").symlink_to(ROOT / "music_tf")
    return tmp_path


def test_a_dead_link_an_unknown_heading_and_an_unknown_name_fail_the_build(copied):
    with (copied / "docs/reference.md").open("a", encoding="utf-8") as page:
        page.write(BROKEN)
    (copied / "docs/lonely.md").write_text("# A page outside the navigation\n")
    code, said = build(copied, copied / "site")
    assert code == 1
    for fault in ("'nowhere.md'", "#nowhere", "'music_tf.nothing'", "lonely.md"):
        assert fault in said


def test_pages_begin_with_the_readme_and_hold_settings_of_every_learner_and_reward(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'src="images/push.gif"' in page
    assert 'href="music.html"' in page
    assert 'href="docs/' not in page
    assert (site / "CITATION.cff").read_bytes() == (ROOT / "CITATION.cff").read_bytes()
    page = (site / "settings.html").read_text(encoding="utf-8")
    headings = set(re.findall(r"<h3[^>]*><code>(\w+)</code>", page))
    assert headings == {*recipes.terms(), *(kind.__name__ for kind in recipes.agents())}
    assert "--music.learning-rate" in page


def test_the_site_is_searched_names_what_programs_call_and_loads_nothing_from_elsewhere(site):
    reference = (site / "reference.html").read_text(encoding="utf-8")
    for name in ("train", "load_run", "Run", "Run.play"):
        assert f'id="music_tf.api.{name}"' in reference
    assert (site / "search/search_index.json").stat().st_size > 100_000
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img)[^>]* src="([^"]*)"', page.read_text(encoding="utf-8"))
        assert [source for source in loaded if source.startswith(("http", "//"))] == []
