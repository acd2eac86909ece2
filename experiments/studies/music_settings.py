"""Which settings suit both FetchPush and FetchPickAndPlace, for MUSIC and for its controls?

Each reward gets the same search: the preset, single changes to it, and one change that only this
reward has. For the learned bound that is `slow` in `music_slow`, which has become the preset; here
the learning rate is the earlier one. A setting is judged by control on both tasks together. All
runs take 80 thousand steps. A search has fewer than three seeds of each setting: it makes a choice
and is no result.
"""

from music_tf.tools.study import CONTROL, Condition, Study, Task

REWARDS = {
    "music": ("ddpg_music", "music", "--music.learning-rate 1e-3"),
    "music_frozen": ("ddpg_music_frozen", "music", ""),
    "joint_motion": ("ddpg_joint_motion", "joint-motion", ""),
}
SETTINGS = {
    "preset": "",
    "mean5": "--{term}.mean 5",
    "penalty01": "--agent.action-l2 0.1",
    "hold8": "--exploration.random-hold 8",
}
OWN = {
    ("music_frozen", "units512"): "--music.hidden-size 512",
    ("joint_motion", "threshold5"): "--joint-motion.threshold 0.005",
}
STUDY = Study(
    question="Which settings serve FetchPush and FetchPickAndPlace alike, for each reward?",
    role="tuning",
    tasks=tuple(
        Task(env_id=env_id, seeds=(102, 103), epochs=10, level=CONTROL)
        for env_id in ("FetchPush-v4", "FetchPickAndPlace-v4")
    ),
    conditions=tuple(
        Condition(
            name=f"{reward}_{setting}",
            recipe=recipe,
            arguments=f"{before} {arguments.format(term=term)}".strip(),
        )
        for reward, (recipe, term, before) in REWARDS.items()
        for setting, arguments in SETTINGS.items()
    )
    + tuple(
        Condition(name=f"{reward}_{setting}", recipe=REWARDS[reward][0], arguments=arguments)
        for (reward, setting), arguments in OWN.items()
    ),
    shown={
        "level/share": "evaluations with control",
        "eval/object_comotion_m": "co-motion (m)",
        "eval/object_lift_rate": "lifted",
    },
)
