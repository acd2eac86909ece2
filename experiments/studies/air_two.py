"""Does a robot bring one of two blocks to its goal, and leave the other one alone?

`music_tf/FetchPushTwo-v0`: fewer than three seeds, one. MUSIC of both blocks for 160 thousand
steps, then velocities of the place itself: a condition names a block and its velocity. Goals are
of both blocks, of which the policy is led to one at a time. `experiments/two_blocks.py RUN` tells
goals of one block apart, and how often the other one stays.
"""

from music_tf.tools.study import Condition, Study, Task

WORLD = "music_tf/FetchPushTwo-v0"

STUDY = Study(
    question="Can a condition name which of two blocks moves, and how fast?",
    role="reported",
    tasks=(Task(env_id=WORLD, seeds=(320,), epochs=20),),
    conditions=(
        Condition(name="music", label="MUSIC", recipe="sac_music"),
        Condition(
            name="music_place",
            label="MUSIC, then the place of either block",
            recipe="sac_place",
            arguments="--distance.columns 3 4 25 26 --condition.kind ball --condition.size 4 "
            "--condition.groups 2 --distance.speed 0.4 --agent.discount 0.95",
            start_from="music",
            parts="actor,normalizer",
            epochs={WORLD: 13},
            measured="--zero-shot",
        ),
    ),
    shown={"zero_shot/end": "both goals reached at the end"},
)
