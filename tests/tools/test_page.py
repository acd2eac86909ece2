import math
import re

import pytest

from music_tf.tools.page import Html, bars, data_uri, document, folded, number, table, tag

HOSTILE = "</style><script>alert(1)</script>\"'&"
HARMLESS = "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;"


def test_text_is_escaped_wherever_it_enters():
    assert tag("p", HOSTILE) == f"<p>{HARMLESS}</p>"
    assert tag("p", title=HOSTILE) == f'<p title="{HARMLESS}"></p>'
    assert HARMLESS in folded(HOSTILE)
    assert HARMLESS in table([HOSTILE], [], "texts")
    assert HARMLESS in table([], [[HOSTILE]], "texts")
    assert bars({"eval/x": HOSTILE}, {HOSTILE: {"eval/x": 1}}, HOSTILE).count(HARMLESS) == 3
    page = document(HOSTILE, tag("p", HOSTILE)).decode()
    assert page.count(HARMLESS) == 2
    assert "<script" not in page


def test_markup_stays_as_it_is():
    assert tag("p", tag("b", "a<b"), Html("<i>")) == "<p><b>a&lt;b</b><i></p>"
    assert tag("img", alt="x", src=True, class_="y") == '<img alt="x" src class="y">'
    assert tag("details", open=False) == "<details></details>"


def test_a_page_may_load_nothing_and_run_nothing():
    page = document("title", "").decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    allowed = {
        rule.split()[0]: rule.split()[1:] for rule in policy.replace("&#x27;", "'").split(";")
    }
    assert allowed.pop("default-src") == ["'none'"]
    assert allowed == {
        "img-src": ["data:"],
        "media-src": ["data:"],
        "style-src": ["'unsafe-inline'"],
    }
    assert re.findall(r"url\(|@import", page) == []


def test_names_that_are_no_unicode_do_not_stop_a_page():
    assert b"<title>?</title>" in document("\udcff", "")


def test_an_address_holds_its_content():
    assert data_uri("image/png", b"\0\1") == "data:image/png;base64,AAE="


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (120.0, "120"),
        (0.25, "0.250"),
        (-1.5, "-1.500"),
        (0.000123, "0.000123"),
        (12345.6, "1.23e+04"),
        (1e20, "1e+20"),
        *((nothing, "-") for nothing in (None, "x", True, math.nan, math.inf, 10**400, [1])),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_bars_compare_with_the_largest_of_a_column():
    rows = {"ours": {"a": 2.0, "b": -1.0}, "random": {"a": 0.5, "b": None}}
    text = bars({"a": "first", "b": "second", "c": "nowhere"}, rows, "policy")
    assert re.findall(r"--share:(\d+)%", text) == ["100", "0", "25", "0"]
    assert "nowhere" not in text
