"""What `music-tf train --help` shows on its first screen."""

import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of, show_option
from music_tf.reading.command import TrainCommand
from music_tf.reading.overview import overview


@pytest.mark.parametrize("name", ["epochs", "updates", "seed", "env_id"])
def test_a_setting_says_by_recipe_where_defaults_differ(name):
    values = {
        field.value
        for recipe in recipes.names()
        for field in fields_of(recipes.resolve(recipe))
        if field.name == name
    }
    start = f"  {show_option(name)} "
    (row,) = [line for line in overview(TrainCommand()).splitlines() if line.startswith(start)]
    assert ("by recipe" in row) == (len(values) > 1)
