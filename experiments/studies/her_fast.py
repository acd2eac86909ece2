"""How soon does `ddpg_her_fast` learn a task?

Ten seeds of FetchPush, five of FetchPickAndPlace, three of FetchSlide, with the unchanged recipe:
160 thousand steps, and 240 thousand for the last two, fixed in advance. About 10, 20 and 15 minutes
per run on one core. Five seeds of FetchReach take the 10 epochs of the recipe, two minutes each.
Settings were chosen on seeds 100 to 102, those of FetchReach on 0 to 4.

The levels are 0.95 on FetchPush, 0.90 on FetchPickAndPlace, 0.60 on FetchSlide and 0.98 on
FetchReach, each in one evaluation of 40 episodes. FetchPickAndPlace shifted to the task from epoch
8 to 12 when it was measured; the recipe now follows the share of episodes that lift (`steps`). Each
task has its own number of epochs and switches rewards at a different time. Once FetchSlide has
reached 0.60 it swings between 0.45 and 0.80. Minutes are those of one core beside other runs.
"""

from music_tf.tools.study import Condition, Picture, Study, Task

SUCCESS = "eval/success_rate"

STUDY = Study(
    question="How soon does ddpg_her_fast learn a task?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 210), epochs=20, level={SUCCESS: 0.95}),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 205), epochs=30, level={SUCCESS: 0.9}),
        Task(env_id="FetchSlide-v4", seeds=range(200, 203), epochs=30, level={SUCCESS: 0.6}),
        Task(env_id="FetchReach-v4", seeds=range(200, 205), epochs=10, level={SUCCESS: 0.98}),
    ),
    conditions=(Condition(name="fast", label="`ddpg_her_fast`", recipe="ddpg_her_fast"),),
    shown={
        SUCCESS: "success",
        "level/steps": "its level: seeds, thousand steps",
        "level/minutes": "minutes",
    },
    beside=("sb3_push/ddpg", "sb3_push/sac", "steps/rher"),
    followed=(SUCCESS,),
    pictures=(
        Picture(name="push_success", metrics=(SUCCESS,), tasks=("FetchPush-v4",), axis="minutes"),
    ),
)
