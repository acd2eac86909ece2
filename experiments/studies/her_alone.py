"""What does hindsight alone reach with all that `ddpg_her_fast` has but MUSIC?

`ddpg_her` on FetchPush with as many critics and updates as `her_fast`: three of its seeds and its
160 thousand steps, fixed beforehand. On seed 100 one critic or two, 80 updates or 160, were alike.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="How much of ddpg_her_fast is hindsight?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(200, 203), epochs=20),),
    conditions=(
        Condition(
            name="alone",
            recipe="ddpg_her",
            arguments="--agent.critics 2 --updates 160 --exploration.random-hold 4",
        ),
    ),
)
