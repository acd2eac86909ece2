"""Which pay of the mutual information serves FetchPush and FetchPickAndPlace alike?

Settings of the reward and of the horizon, the same on both tasks: the gain is found by itself.
Chosen by control on both together; seeds 100 and 101, 160 thousand steps a run, one core each. A
setting takes about half an hour of a core.
"""

from music_tf.tools.study import Condition, Study, Task

AUTO = "--agent.return-clip auto --{term}.gain auto --{term}.pay log --{term}.clip 0 4"
SETTINGS = {
    "mean10": "--{term}.mean 10 --agent.discount 0.98",
    "mean30": "--{term}.mean 30 --agent.discount 0.98",
    "mean10_short": "--{term}.mean 10 --agent.discount 0.95",
    "mean30_short": "--{term}.mean 30 --agent.discount 0.95",
}
STUDY = Study(
    question="Which pay serves FetchPush and FetchPickAndPlace alike?",
    role="tuning",
    tasks=(
        Task(env_id="FetchPickAndPlace-v4", seeds=(100, 101), epochs=20),
        Task(env_id="FetchPush-v4", seeds=(100, 101), epochs=20),
    ),
    conditions=tuple(
        Condition(
            name=f"music_{name}",
            recipe="ddpg_music",
            arguments=f"{AUTO} {setting}".format(term="music"),
        )
        for name, setting in SETTINGS.items()
    ),
)
