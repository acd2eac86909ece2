"""Five skills on FetchPickAndPlace: by diversity, by mutual information, by one after the other.

`sac_music_diayn` has half its epochs from `sac_music_skills` and half of its own, in all as many as
`sac_diayn`.
"""

from music_tf.tools.study import Condition, Study, Task

ENV_ID = "FetchPickAndPlace-v4"
ALL = 40

STUDY = Study(
    question="What do skills learn with MUSIC, with DIAYN, and with both?",
    role="looked at",
    tasks=(Task(env_id=ENV_ID, seeds=range(3), epochs=ALL // 2),),
    conditions=(
        Condition(name="music", recipe="sac_music_skills"),
        Condition(name="music_diayn", recipe="sac_music_diayn", start_from="music"),
        Condition(name="diayn", recipe="sac_diayn", epochs={ENV_ID: ALL}),
    ),
)
