"""Where must a learned bound win? On a table where a second block moves by itself.

Three rewards on `music_tf/FetchPushConveyor-v0`: five seeds, 160 thousand steps.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a learned bound tell the block that it can move from the one that moves itself?",
    role="reported",
    tasks=(Task(env_id="music_tf/FetchPushConveyor-v0", seeds=range(200, 205), epochs=20),),
    conditions=(
        Condition(name="music", recipe="ddpg_music"),
        Condition(name="frozen", recipe="ddpg_music_frozen"),
        Condition(name="joint_motion", recipe="ddpg_joint_motion"),
    ),
)
