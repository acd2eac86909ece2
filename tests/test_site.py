"""The site of pages is built from links and names that exist, and holds what is promised."""

import os
import re
import sys

import pytest

from music_tf import recipes
from tests.kit.started import ROOT, ended

pytestmark = pytest.mark.thorough

pytest.importorskip("mkdocs", reason="docs.lock is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    program = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = ended(*program, env=variables, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


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
