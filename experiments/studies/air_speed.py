"""Which speed does `sac_place` read off the motion of a packaged agent of MUSIC?

One epoch of FetchPickAndPlace and FetchPush, seeds on which settings were chosen: the speed is
settled when learning begins, at its end.

0.25 to 0.6 was hoped for on FetchPickAndPlace; one seed has 0.63.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Which speed is read off the motion of MUSIC?",
    role="tuning",
    tasks=tuple(
        Task(env_id=task, seeds=range(100, 105), epochs=1)
        for task in ("FetchPickAndPlace-v4", "FetchPush-v4")
    ),
    conditions=(Condition(name="place", label="speed of the place", recipe="sac_place"),),
    shown={"distance/speed": "speed, in deviations of random play"},
)
