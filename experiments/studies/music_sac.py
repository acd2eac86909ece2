"""Does the stochastic actor control the block as well, under the same preset?

`sac_music` on FetchPush, 160 thousand steps, three seeds that were not used for any choice. In
`rate_1e3` the learning rate of the statistics network is 1e-3, not 1e-4; the agent `push_sac` of
the package is its run.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

STUDY = Study(
    question="Does sac_music control the block on seeds that nobody tuned on?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(200, 203), epochs=20, level=CONTROL),),
    conditions=(
        Condition(name="music", label="SAC, learned T", recipe="sac_music"),
        Condition(
            name="rate_1e3",
            label="SAC, learned T at 1e-3",
            recipe="sac_music",
            arguments="--music.learning-rate 1e-3",
        ),
    ),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "level/steps": "control: seeds, thousand steps",
        "level/held": "control afterwards",
    },
)
