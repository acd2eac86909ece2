"""Does MUSIC move the object of an arm that it has never seen, told nothing but columns?

`ddpg_music` on panda-gym's PandaPush-v3, whose gain is found by itself. The condition `columns` has
no table to lose the object from, as an environment that nobody knows; `music` is what we know of
this one: an episode that loses the object is worth nothing from there on. A run has 56 thousand
steps, five minutes on a quiet core. The budget was fixed on seed 100; no setting was chosen.
"""

from music_tf.tools.study import Condition, Study, Task

COLUMNS = "--world.agent 0 1 2 --world.surrounding 6 7 8 --world.object 6 7 8 --world.gripper 0 1 2"
STUDY = Study(
    question="Does ddpg_music move the object of PandaPush within ten minutes?",
    role="reported",
    tasks=(Task(env_id="panda_gym:PandaPush-v3", seeds=range(220, 225), epochs=7),),
    conditions=(
        Condition(name="music", recipe="ddpg_music", arguments=COLUMNS),
        Condition(
            name="columns", recipe="ddpg_music", arguments=f"{COLUMNS} --lost-object continue"
        ),
    ),
)
