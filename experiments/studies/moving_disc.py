"""Where must a learned bound win? Beside a disc that goes round by itself, in another unit.

Three rewards on `music_tf/PointPushCrowd-v0`, the second disc in thousandths of the unit and two
columns of noise beside it: five seeds, 48 thousand steps.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a learned bound tell the disc that it can move from the one that moves itself?",
    role="reported",
    tasks=(Task(env_id="music_tf/PointPushCrowd-v0", seeds=range(200, 205), epochs=6),),
    conditions=tuple(
        Condition(name=name, recipe=recipe, arguments="""--env.kwargs '{"unit": 1000}'""")
        for name, recipe in (
            ("music", "ddpg_music"),
            ("frozen", "ddpg_music_frozen"),
            ("joint_motion", "ddpg_joint_motion"),
        )
    ),
)
