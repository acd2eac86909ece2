"""Every preset, and where presets of releases fit that are refused elsewhere."""

from music_tf import recipes

EVERY_PRESET = [(name, preset) for name in recipes.names() for preset in recipes.presets(name)]
RELEASED_ON = {"csd_release": "FetchPush-v4", "lsd_release": "Ant-v5", "metra_release": "Ant-v5"}
