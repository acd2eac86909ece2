"""What is MUSIC worth for tasks, its own training counted?

`ddpg_her` alone for all epochs, against some epochs of MUSIC and the others with hindsight: on from
the policy of MUSIC, with its reward added, or with its priorities in replay. The epochs of a
condition and of what it starts from add up to those of `ddpg_her`. The critic of MUSIC knows
rewards in [0, 1], that of the task costs in [-1, 0]: one condition leaves it behind, on FetchPush.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"
MUSIC = {PUSH: 5, PICK: 15}
ALL = {PUSH: 18, PICK: 34}
AFTER = {env_id: ALL[env_id] - MUSIC[env_id] for env_id in ALL}

STUDY = Study(
    question="What is MUSIC worth for tasks?",
    role="looked at",
    tasks=(Task(env_id=PUSH, seeds=range(5)), Task(env_id=PICK, seeds=range(3))),
    conditions=(
        Condition(name="her", recipe="ddpg_her", epochs=ALL),
        Condition(name="music", recipe="ddpg_music", epochs=MUSIC),
        *(
            Condition(name=name, recipe=recipe, epochs=AFTER, start_from="music")
            for name, recipe in (
                ("finetuned", "ddpg_music_finetune_her"),
                ("added_reward", "ddpg_music_reward_her"),
                ("prioritized", "ddpg_music_prioritized_her"),
            )
        ),
        Condition(
            name="finetuned_actor",
            recipe="ddpg_music_finetune_her",
            epochs=AFTER,
            tasks=(PUSH,),
            start_from="music",
            parts="actor,normalizer",
        ),
    ),
)
