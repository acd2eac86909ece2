"""Does a robot that was trained without goals send a puck to rest at a place out of its reach?

FetchSlide, one seed; fewer than three seeds, for want of time. MUSIC as in `zero_shot_slide`, then
SAC under conditions that are places where the puck comes to rest (`distance.reach`). On tuning seed
100, after 24 thousand steps, `distance/aligned` was 0.54 under rewards by distance and 0.24 by its
square, one run each. Relabelling and budget were not tried there.
"""

from music_tf.tools.study import Condition, Study, Task

SLIDE = "FetchSlide-v4"
PLACES = "--condition.kind ball --distance.reach 7 --distance.lost-pays -0.3 --agent.discount 0.99"

STUDY = Study(
    question="Does a puck come to rest where it is told, after one hit and without a task?",
    role="reported",
    tasks=(Task(env_id=SLIDE, seeds=(320,), epochs=20),),
    conditions=(
        Condition(name="music", label="MUSIC, before places", recipe="sac_music"),
        Condition(
            name="places",
            label="MUSIC, then places of rest",
            recipe="sac_place",
            arguments=PLACES,
            start_from="music",
            parts="actor,normalizer",
            measured="--zero-shot",
        ),
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)
