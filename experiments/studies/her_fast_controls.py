"""How much of `ddpg_her_fast` is due to hindsight alone, and how much to the learned bound?

On the first seeds of `her_fast`: `ddpg_her` with the same number of critics and updates, and an
ablation of the recipe with an untrained statistics network. Budgets are the steps within which
every seed of `her_fast` reached its level: 96 thousand on FetchPush, 112 thousand on
FetchPickAndPlace. On seed 100, hindsight with one critic or two, 80 updates or 160, were alike.

Transfer (one seed, study `music_transfer` of commit 53c0837) from 40 thousand steps of
FetchPickAndPlace with an untrained network to the task of FetchPush: from the policy, with
hindsight, success is 0.45 after 96 thousand further steps; with the network's reward added, without
hindsight, it stays at chance. Not run: controls on FetchPickAndPlace, other parts of the recipe.
"""

from music_tf.tools.study import Condition, Study, Task

SUCCESS = "eval/success_rate"
ALONE = "--agent.critics 2 --updates 160 --exploration.random-hold 4"

STUDY = Study(
    question="What does ddpg_her_fast owe to hindsight alone, and what to the learned bound?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 203), epochs=12, level={SUCCESS: 0.95}),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 203), epochs=14, level={SUCCESS: 0.9}),
    ),
    conditions=Condition.of_rows(
        ("frozen", "`ddpg_her_fast`, untrained T", "ddpg_her_fast", "--music.train False"),
        ("alone", "hindsight alone", "ddpg_her", ALONE),
    ),
    shown={
        SUCCESS: "success",
        "level/steps": "its level: seeds, thousand steps",
        "level/minutes": "minutes",
    },
    followed=(SUCCESS,),
)
