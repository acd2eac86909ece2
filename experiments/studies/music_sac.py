"""Does the stochastic actor control the block as well, under the same preset?

`sac_music` on FetchPush, 160 thousand steps, three seeds that nothing was chosen on.
`rate_1e3` has the step size of the preset before `music_slow`.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does sac_music control the block on seeds that nobody tuned on?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(200, 203), epochs=20),),
    conditions=(
        Condition(name="music", recipe="sac_music"),
        Condition(name="rate_1e3", recipe="sac_music", arguments="--music.learning-rate 1e-3"),
    ),
)
