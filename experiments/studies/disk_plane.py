"""How useful are an ant's skills for a task in the plane, learned one by one or at once?

A controller chooses among four frozen skills of `disk_robots` on Ant, seed 290, every ten steps,
for 200 thousand steps of the simulator. Goals lie on a circle of 4 metres, and the return is the
decrease of the distance. Episodes do not end with a fall, as when the skills were learned. About
four minutes per run on one core; fewer than three seeds, for want of time. Settings are those of
the preset.

Random choices of skills increase the distance to the goal by 2.3 m (DISk) and 0.5 m (DIAYN). The
controller improves on both: the ant ends 0.8 m farther from the goal with DISk's skills, and 0.8 m
nearer to it with DIAYN's. Returns discount the ten steps of a choice by 0.99 each, so metres are
about 4 % smaller.
"""

from music_tf.tools.study import Condition, Study, Task

GOALS = "music_tf/AntGoals-v0"
FALLS = """--env.kwargs '{"terminate_when_unhealthy": false}'"""
SKILLS = "runs/studies/disk_robots/ant_{}/music_tf_Ant-v0/seed290"

STUDY = Study(
    question="Does a controller reach goals in the plane with the skills of an ant?",
    role="reported",
    tasks=(Task(env_id=GOALS, seeds=(290,), epochs=20),),
    conditions=tuple(
        Condition(
            name=name,
            label=f"controller of four skills of {label}",
            recipe="skills_controller",
            arguments=f"--env.skills {SKILLS.format(name)} {FALLS}",
        )
        for name, label in (("disk", "DISk"), ("diayn", "DIAYN"))
    ),
    shown={"eval/return": "metres nearer to the goal, of 4"},
)
