"""Does a statistics network that moves slowly hold control of FetchPush better?

Beside the preset of `music_settings`, on its seeds, tasks and steps, with a tenth of its step size
and smaller still. What is paid for a step then changes more slowly, so that values can follow.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a slowly moving statistics network do better?",
    role="tuning",
    tasks=tuple(
        Task(env_id=env_id, seeds=(102, 103), epochs=10)
        for env_id in ("FetchPush-v4", "FetchPickAndPlace-v4")
    ),
    conditions=(
        Condition(name="slow", recipe="ddpg_music", arguments="--music.learning-rate 1e-4"),
        Condition(name="slower", recipe="ddpg_music", arguments="--music.learning-rate 3e-5"),
    ),
)
