"""Does a robot bring a block where it is told, into the air as well, without ever having a task?

FetchPickAndPlace and FetchPush, five seeds. Each seed has a MUSIC run of 160 thousand steps of its
own, and methods after MUSIC start from its actor.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"

STUDY = Study(
    question="Does the block come to goals that no run was trained on, and stay there?",
    role="reported",
    tasks=tuple(Task(env_id=task, seeds=range(320, 325), epochs=20) for task in (PICK, PUSH)),
    conditions=(
        Condition(name="music_pick", label="MUSIC", recipe="ddpg_music", tasks=(PICK,)),
        Condition(name="music_push", label="MUSIC", recipe="sac_music", tasks=(PUSH,)),
    ),
)
