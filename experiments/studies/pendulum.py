"""Does soft actor-critic learn a task without goals on seeds that were not used for its settings?

`sac` on Pendulum-v1, preset `laptop`, which was written before the first run and has not changed
since. Ten thousand steps per run. About five minutes on two cores.

The return first reaches -200, which means that the pole is swung up and held, after four to five
thousand steps on five seeds of five, and all hold it after eight thousand. Ten thousand steps take
39 to 48 seconds from the launch on one core, 118 on a shared one.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does sac learn Pendulum within ten thousand steps?",
    role="reported",
    tasks=(
        Task(env_id="Pendulum-v1", seeds=range(220, 225), epochs=10, level={"eval/return": -200.0}),
    ),
    conditions=(Condition(name="sac", label="`sac`", recipe="sac"),),
    shown={
        "eval/return": "return",
        "level/steps": "-200: seeds, thousand steps",
        "spent/minutes": "minutes in all",
    },
    followed=("eval/return",),
)
