"""Does what the statistics network learns matter, or would any reward for joint motion do?

The same learner for the same steps under three rewards: mutual information as it is learned, under
a network left at its random start, and a hand-made one for moving together. About four hours on
two cores.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does the learned mutual information matter?",
    role="looked at",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(5), epochs=20),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(3), epochs=20),
    ),
    conditions=(
        Condition(name="music", recipe="ddpg_music"),
        Condition(name="frozen", recipe="ddpg_music_frozen"),
        Condition(name="joint_motion", recipe="ddpg_joint_motion"),
    ),
)
