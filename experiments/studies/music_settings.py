"""Which pay of the mutual information serves FetchPush and FetchPickAndPlace alike?

Settings of the reward and of the horizon, the same on both tasks: the gain is found by itself.
Chosen by control on both together; seeds 100 and 101, 160 thousand steps a run, one core each. A
setting takes about half an hour of a core.
"""

from music_tf.tools.study import Condition, Study, Task

COMMON = (
    "--agent.critics 2 --agent.discount 0.98 --agent.return-clip auto"
    " --{term}.gain auto --{term}.pay log --{term}.clip 0 4"
)
SETTINGS = {
    "mean30": "--{term}.mean 30",
    "mean10": "--{term}.mean 10",
    "mean100": "--{term}.mean 100",
}
STUDY = Study(
    question="Which pay serves FetchPush and FetchPickAndPlace alike?",
    role="tuning",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=(100, 101, 102), epochs=16),
        Task(env_id="FetchPickAndPlace-v4", seeds=(100, 101, 102), epochs=20),
    ),
    conditions=tuple(
        Condition(
            name=f"music_{name}",
            recipe="ddpg_music",
            arguments=f"{COMMON} {setting}".format(term="music"),
        )
        for name, setting in SETTINGS.items()
    ),
)
