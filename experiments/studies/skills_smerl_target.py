"""What does plain `sac` return on the cheetah after 300 thousand steps, as SMERL's target?

There are fewer than three seeds, for want of time: about 15 minutes per run on one core.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="What is the return that skills_smerl asks for?",
    role="tuning",
    tasks=(Task(env_id="music_tf/HalfCheetah-v0", seeds=(100, 101), epochs=60),),
    conditions=(Condition(name="sac", recipe="sac", arguments="--collect.updates-per-step 0.25"),),
    shown={"eval/return": "return"},
)
