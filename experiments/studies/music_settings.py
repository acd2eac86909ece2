"""Which pay of the mutual information serves FetchPush and FetchPickAndPlace alike?

Settings of the reward and of the horizon, the same on both tasks: the gain is found by itself.
Chosen by control on both together; seeds 100 and 101, 160 thousand steps a run, one core each. A
setting takes about half an hour of a core.
"""

from music_tf.tools.study import Condition, Study, Task

COMMON = "--agent.discount 0.98 --agent.return-clip auto --{term}.pay log"
SETTINGS = {
    "gain3000_to4": "--{term}.gain 3000 --{term}.clip 0 4",
    "gain3000_to8": "--{term}.gain 3000 --{term}.clip 0 8",
    "gain1000_to8": "--{term}.gain 1000 --{term}.clip 0 8",
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
            arguments=f"{COMMON} {setting}".format(term="music"),
        )
        for name, setting in SETTINGS.items()
    ),
)
