"""Are skills found where they must be, and where only the object tells them apart?

`sac_diayn` on toys: a point that is told apart by where it is itself, a point beside a disc in the
same way, and by where the disc is. Then the disc once more after MUSIC. A minute a run on one core.
"""

from music_tf.tools.study import Condition, Study, Task

REACH, PUSH = "music_tf/PointReach-v0", "music_tf/PointPush-v0"
SMALL = "--agent.hidden-sizes 64 64"
LONG, SHORT = 30, 14

STUDY = Study(
    question="Where are skills found?",
    role="looked at",
    tasks=tuple(Task(env_id=env_id, seeds=range(5), epochs=LONG) for env_id in (REACH, PUSH)),
    conditions=(
        Condition(name="diayn", recipe="sac_diayn", arguments=SMALL),
        Condition(
            name="diayn_on_itself",
            recipe="sac_diayn",
            arguments=f"{SMALL} --world.descriptor 0 1",
            tasks=(PUSH,),
        ),
        Condition(
            name="music",
            recipe="sac_music_skills",
            arguments=SMALL,
            tasks=(PUSH,),
            epochs={PUSH: SHORT},
        ),
        Condition(
            name="music_diayn",
            recipe="sac_music_diayn",
            arguments=SMALL,
            tasks=(PUSH,),
            epochs={PUSH: LONG - SHORT},
            start_from="music",
        ),
    ),
)
