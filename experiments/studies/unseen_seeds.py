"""Does the preset hold on seeds that none of its settings were chosen on?

Settings of `ddpg_music` on FetchPush were chosen on seeds 0 to 4, on which its results are
published. Here it runs on seeds 100 to 102. About ten minutes on two cores. When it ran, no setting
had been chosen on these seeds; since then settings are, so they count as looked at.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does ddpg_music learn control on seeds that nobody tuned on?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(100, 103), epochs=20),),
    conditions=(Condition(name="music", recipe="ddpg_music"),),
)
