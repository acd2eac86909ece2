"""Fine-tuning, priorities and added reward as released, without hindsight, against plain `ddpg`.

For the record: without hindsight a sparse task is near chance by construction. Objectives are
those of the release, sizes those of the preset `laptop`; with `--preset paper` in the arguments of
all conditions a run takes hours.
"""

from studying.plan import Condition, Study, Task

MUSIC, ALL = 8, 30
PUSH = "FetchPush-v4"

STUDY = Study(
    question="Do the released ways to use MUSIC for a task beat plain DDPG without hindsight?",
    tasks=(Task(env_id=PUSH, seeds=range(3), epochs=ALL - MUSIC),),
    conditions=(
        Condition(name="ddpg", recipe="ddpg", epochs={PUSH: ALL}),
        Condition(name="music", recipe="ddpg_music", epochs={PUSH: MUSIC}),
        Condition(name="finetuned", recipe="ddpg_music_finetune", start_from="music"),
        Condition(name="prioritized", recipe="ddpg_music_prioritized", start_from="music"),
        Condition(name="added_reward", recipe="ddpg_music_reward", start_from="music"),
    ),
)
