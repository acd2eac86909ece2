"""Does learning the bound matter for moving the block, once the frozen network is paid as well?

`mi_matters` left the frozen network at the gain of 1000 that fits the learned one, under which it
is paid hundreds of times less. Here its gain is 20000; all else is as there. About fifteen
minutes on two cores.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a frozen network at a gain that fits it move the block as well?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(5), epochs=20),),
    conditions=(
        Condition(name="frozen_20000", recipe="ddpg_music_frozen", arguments="--music.gain 20000"),
    ),
)
