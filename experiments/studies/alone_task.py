"""How soon does `ddpg_her_fast` learn a task on two ranks of an idle machine?

Each run was stopped at its first evaluation that met the level; the time limit was twelve minutes.
A few short commands ran at the same time as seed 200 of FetchPickAndPlace.

The level is a success of 0.95 on FetchPush and of 0.90 on FetchPickAndPlace. Minutes compare within
one machine: the same steps of FetchPush took nearly twice as long on the Xeon. FetchPickAndPlace
shifted to the task from epoch 8 to 12 when it was measured; the recipe now follows the share of
episodes that lift (`steps`).
"""

from music_tf.tools.study import Condition, Study, Task

SUCCESS = "eval/success_rate"

STUDY = Study(
    question="How many minutes does a task take on two idle cores?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 203), level={SUCCESS: 0.95}),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 203), level={SUCCESS: 0.9}),
    ),
    conditions=(
        Condition(name="fast", label="`ddpg_her_fast`, AMD EPYC", recipe="ddpg_her_fast"),
        Condition(
            name="fast_xeon",
            label="`ddpg_her_fast`, Intel Xeon",
            recipe="ddpg_her_fast",
            tasks=("FetchPush-v4",),
        ),
    ),
    shown={
        "level/steps": "level reached: seeds, thousand steps",
        "level/minutes": "minutes from the launch",
    },
    by_hand="`music-tf launch -n 2 train ddpg_her_fast --env-id ID --seed N --max-minutes 12`",
)
