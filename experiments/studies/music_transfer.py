"""Does what was learned on another task serve better than a network that never learns?

MUSIC and its frozen control, 40 thousand steps of FetchPickAndPlace each. Then 96 thousand of
FetchPush: on from the policy, with hindsight, or paid by the statistics network beside the task,
without, as released. A policy or a network is taken over from the run of the same seed. `learned`
has the step size of the preset before `music_slow`, `preset` that of now.
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
            Condition(name=name, recipe=recipe, arguments=arguments, tasks=(PICK,))
            for name, recipe, arguments in (
                ("preset", "ddpg_music", ""),
                ("learned", "ddpg_music", "--music.learning-rate 1e-3"),
                ("frozen", "ddpg_music_frozen", ""),
            )
        ),
        *(
            Condition(
                name=f"{start}_{what}",
                recipe=recipe,
                tasks=(PUSH,),
                start_from=start,
                start_task=PICK,
            )
            for what, recipe in (
                ("policy", "ddpg_music_finetune_her"),
                ("reward", "ddpg_music_transfer"),
            )
            for start in ("preset", "learned", "frozen")
        ),
    ),
)
