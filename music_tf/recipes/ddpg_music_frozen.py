"""`ddpg_music` with a statistics network that never learns: what its random start is worth.

A control of ours: a random network already pays for some joint motion. Only what `ddpg_music` does
better than this has been learned. Compare at a gain that fits it: on FetchPush the learned
network's 1000 pays it next to nothing; `--music.gain 20000` pays it enough to move the block as
well, if later.
"""

from music_tf.config.fields import with_fields
from music_tf.recipes import ddpg_music

CONFIG = with_fields(ddpg_music.CONFIG, {"music.train": False})
LAPTOP = with_fields(ddpg_music.LAPTOP, {"music.train": False})
LAPTOP_PER_ENVIRONMENT = ddpg_music.LAPTOP_PER_ENVIRONMENT
