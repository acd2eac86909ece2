"""How soon does MUSIC reach control on two ranks of an idle machine?

Each run was stopped at its first evaluation that met the level; the time limit was six minutes.
"""

from music_tf.tools.study import CONTROL, LIFTED, Condition, Study, Task

STUDY = Study(
    question="How many minutes does control take on two idle cores?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 203), level=CONTROL),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 203), level=LIFTED),
    ),
    conditions=(Condition(name="music", label="`ddpg_music`, AMD EPYC", recipe="ddpg_music"),),
    shown={
        "level/steps": "level reached: seeds, thousand steps",
        "level/minutes": "minutes from the launch",
    },
    by_hand="`music-tf launch -n 2 train ddpg_music --env-id ID --seed N --max-minutes 6`",
)
