"""What does mutual information alone make a hand do with a block?

`ddpg_music` on HandManipulateBlock-v1 as it comes, and with a support typed that covers the palm:
then an episode that loses the block is worth nothing from there on. A run has 96 thousand steps,
about ten minutes on one core. The budget was fixed on seed 100; no setting was chosen.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does ddpg_music turn or move the block of a hand, and keep it?",
    role="reported",
    tasks=(Task(env_id="HandManipulateBlock-v1", seeds=range(220, 223), epochs=6),),
    conditions=(
        Condition(name="music", recipe="ddpg_music"),
        Condition(
            name="music_palm",
            recipe="ddpg_music",
            arguments="--world.support 0.9 0.78 1.1 1.0 0.165 0.05",
        ),
    ),
)
