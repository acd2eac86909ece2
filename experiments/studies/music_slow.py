"""Does a statistics network with a lower learning rate keep control of FetchPush better?

Its learning rate is 1e-4 or 3e-4, beside 1e-3, the preset's at that time. The reward of a step then
changes more slowly, so that value estimates can follow. Tasks and steps are those of
`music_settings`, with more seeds of FetchPush. FetchPickAndPlace has fewer than three seeds, which
is too few for a result.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

STUDY = Study(
    question="Does a slowly moving statistics network do better?",
    role="tuning",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(102, 108), epochs=10, level=CONTROL),
        Task(env_id="FetchPickAndPlace-v4", seeds=(102, 103), epochs=10, level=CONTROL),
    ),
    conditions=(
        Condition(
            name="slow", label="1e-4", recipe="ddpg_music", arguments="--music.learning-rate 1e-4"
        ),
        Condition(
            name="middle", label="3e-4", recipe="ddpg_music", arguments="--music.learning-rate 3e-4"
        ),
        Condition(
            name="preset", label="1e-3", recipe="ddpg_music", arguments="--music.learning-rate 1e-3"
        ),
    ),
    shown={
        "level/share": "evaluations with control",
        "eval/object_comotion_m": "co-motion (m)",
        "eval/object_lift_rate": "lifted",
    },
    beside=("music_settings/music_preset",),
)
