"""Does a network that was trained on another task help more than one that never learns?

MUSIC and its frozen control take 40 thousand steps of FetchPickAndPlace each. Then follow 96
thousand of FetchPush: from the policy, with hindsight, or with the reward of the statistics network
added to the task's, without hindsight, as released. Policy or network come from the run of the same
seed. The learned bound is that of the preset.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"

STUDY = Study(
    question="Does FetchPush owe anything to what the bound learned on FetchPickAndPlace?",
    role="reported",
    tasks=(
        Task(env_id=PICK, seeds=range(200, 203), epochs=5),
        Task(env_id=PUSH, seeds=range(200, 203), epochs=12),
    ),
    conditions=(
        *(
            Condition(name=name, label=label, recipe=recipe, tasks=(PICK,))
            for name, label, recipe in (
                ("preset", "learned T", "ddpg_music"),
                ("frozen", "frozen T", "ddpg_music_frozen"),
            )
        ),
        *(
            Condition(
                name=f"{start}_{what}",
                label=f"{label} of FetchPickAndPlace, its {what}",
                recipe=recipe,
                tasks=(PUSH,),
                start_from=start,
                start_task=PICK,
            )
            for what, recipe in (
                ("policy", "ddpg_music_finetune_her"),
                ("reward", "ddpg_music_transfer"),
            )
            for start, label in (("preset", "learned T"), ("frozen", "frozen T"))
        ),
    ),
    shown={"eval/success_rate": "success", "eval/object_moved_rate": "moved"},
    followed=("eval/success_rate",),
)
