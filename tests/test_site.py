"""The site of pages is built from links and names that exist, and holds what is promised."""

import json
import os
import re
import sys

import pytest

from music_tf import recipes
from tests.kit.started import ROOT, ended

pytestmark = pytest.mark.thorough

pytest.importorskip("mkdocs", reason="docs.lock is not installed")

GUIDES = ("first_run", "your_robot", "recipes", "viewing", "python", "environments", "scale")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    program = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    ended(*program, env=variables, timeout=250, exits=0)
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.html")}


def test_pages_begin_with_the_readme_and_hold_settings_of_every_learner_and_reward(site, pages):
    for shown in ('src="images/push.gif"', 'href="music.html"', ">notebook</a> (download)"):
        assert shown in pages["index.html"]
    assert [name for name, page in pages.items() if 'href="docs/' in page] == []
    assert (site / "CITATION.cff").read_bytes() == (ROOT / "CITATION.cff").read_bytes()
    headings = set(re.findall(r"<h3[^>]*><code[^>]*>(\w+)</code>", pages["settings.html"]))
    assert headings == {*recipes.terms(), *(kind.__name__ for kind in recipes.agents())}
    assert "--music.learning-rate" in pages["settings.html"]


def test_names_that_programs_call_are_there_and_nothing_is_loaded_from_elsewhere(pages):
    for name in ("api.train", "api.Run.play", "storage.policy.SavedPolicy.nearest_skill"):
        assert f'id="music_tf.{name}"' in pages["reference.html"]
    assert 'id="music_tf.storage.policy.SavedPolicy.digest"' not in pages["reference.html"]
    for page in pages.values():
        loaded = re.findall(r'<(?:script|img|link)[^>]* (?:src|href)="([^"]*)"', page)
        assert [source for source in loaded if source.startswith(("http", "//"))] == []


def test_a_search_finds_guides_before_results_and_nothing_that_contributors_read(site):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    weights = {row["location"].partition("#")[0]: row.get("boost", 1) for row in index["docs"]}
    assert min(weights[f"{name}.html"] for name in GUIDES) > weights["music.html"]
    assert (
        weights["music.html"] > 1000 * weights["results.html"]
    )  # what a title of its parts counts
    searched = {name.partition("/")[0] for name in weights}
    assert {"changelog.html", "contributing.html", "experiments"} & searched == set()


def test_equations_are_set_links_lead_to_stored_results_and_pages_lead_on(site, pages):
    for name in ("music", "skills", "goals", "pearl", "metrics", "reference"):
        assert "<math" in pages[f"{name}.html"], name
    left = r'class="arithmatex"|\.\. math::|\$\$'
    assert [name for name, page in pages.items() if re.search(left, page)] == []
    stored = "experiments/results/music_holds"
    assert f'href="{stored}/index.html"' in pages["results.html"]
    assert "<h1" in pages[f"{stored}/index.html"]
    assert re.findall(r'rel="next"|md-footer__link--next', pages["results.html"]) != []
