"""Does a robot that was trained without goals send a puck to a given place out of its reach?

FetchSlide, three seeds: 160 thousand steps of MUSIC, then 56 thousand of METRA, or of the position
of the puck itself in place of an embedding. Preset `laptop` everywhere; no setting was chosen here.
About 13 minutes per seed for MUSIC and 4 for each of the two on one core.

The puck passes 39 % of the goals (random directions: 8 %) but comes to rest at 2 %. The brake does
not help: a puck slides on after the robot lets go. On tuning seed 100 (not stored), after 24
thousand steps of MUSIC, 3 of 100 goals were reached at the end: the robot touched the puck in fewer
than half of the episodes. Two seeds have not been run.
"""

from music_tf.tools.study import Condition, Study, Task

SLIDE = "FetchSlide-v4"

STUDY = Study(
    question="Does a robot that was never given a goal send a puck where it is told?",
    role="reported",
    tasks=(Task(env_id=SLIDE, seeds=range(280, 283), epochs=7),),
    conditions=(
        Condition(name="music", label="MUSIC alone", recipe="sac_music", epochs={SLIDE: 20}),
        *(
            Condition(
                name=name,
                label=label,
                recipe=f"sac_{name}",
                start_from="music",
                parts="actor,normalizer",
                measured="--zero-shot",
            )
            for name, label in (("metra", "MUSIC, then METRA"), ("place", "the place itself"))
        ),
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)
