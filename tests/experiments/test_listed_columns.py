import re

import pytest

from experiments.stored import ROOT
from experiments.tables import filled
from music_tf import recipes
from music_tf.config.terms import ENTROPY, reward_metrics
from music_tf.errors import UsageError
from music_tf.storage.metrics import JUDGED, METRICS

FILE = ROOT / "docs/metrics.md"
PAGE = FILE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- columns: .*? -->\n(.*?)<!-- /columns -->", PAGE, re.DOTALL)
ROWS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("- `")]


def test_the_page_shows_what_the_code_declares_with_one_line_for_each_metric():
    # If this fails: make results
    assert filled(PAGE, FILE) == PAGE
    alike = {name for term in (*recipes.terms(), ENTROPY) for name in reward_metrics(term)}
    judged = [name for part in JUDGED.values() for name in part]
    own = [name for name in METRICS if name not in alike]
    shown = [re.match(r"- `(.*?)`: ", row)[1] for row in ROWS]
    assert sorted(shown) == sorted([*own, *judged, *reward_metrics("NAME")])


def test_a_marker_that_names_no_list_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="no list 'controls'\ndid you mean control"):
        filled("<!-- columns: controls -->\n<!-- /columns -->", FILE)
