"""Where presets of releases fit that are refused elsewhere."""

RELEASED_ON = {"csd_release": "FetchPush-v4", "lsd_release": "Ant-v5", "metra_release": "Ant-v5"}
