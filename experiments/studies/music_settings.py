"""Which pay of the mutual information serves FetchPush and FetchPickAndPlace alike?

Settings of the reward and of the horizon, the same on both tasks: the gain is found by itself.
Chosen by control on both together; seeds 100 and 101, 160 thousand steps a run, one core each. A
setting takes about half an hour of a core.
"""

from music_tf.tools.study import Condition, Study, Task

AUTO = (
    "--agent.discount 0.98 --agent.return-clip auto"
    " --{term}.gain auto --{term}.pay log --{term}.clip 0 4"
)
SETTINGS = {
    "mean10": "--{term}.mean 10",
    "mean3": "--{term}.mean 3",
    "mean30": "--{term}.mean 30",
    "mean10_two": "--{term}.mean 10 --agent.critics 2",
}
STUDY = Study(
    question="Which pay serves FetchPush and FetchPickAndPlace alike?",
    role="tuning",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=(100, 101), epochs=20),
        Task(env_id="FetchPickAndPlace-v4", seeds=(100, 101), epochs=20),
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
