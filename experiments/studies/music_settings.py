"""Which pay of the mutual information serves FetchPush and FetchPickAndPlace alike?

The same settings on both tasks: the gain follows the bound, two critics. Judged by control on both
together, on seeds 100 to 102. A run takes 128 thousand steps on FetchPush, 160 thousand on
FetchPickAndPlace.
"""

from music_tf.tools.study import Condition, Study, Task

COMMON = (
    "--agent.critics 2 --agent.discount 0.98 --agent.return-clip auto"
    " --{term}.gain auto --{term}.pay log --{term}.clip 0 4"
)
SETTINGS = {
    "mean30": "--{term}.mean 30",
    "mean100": "--{term}.mean 100",
    "mean100_normalized": "--{term}.mean 100 --{term}.normalize-inputs true",
}
STUDY = Study(
    question="Which pay serves FetchPush and FetchPickAndPlace alike?",
    role="tuning",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=(101, 102, 100), epochs=16),
        Task(env_id="FetchPickAndPlace-v4", seeds=(101, 102, 100), epochs=20),
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
