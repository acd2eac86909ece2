"""Does one preset of MUSIC control the block on ten seeds that were not used for any choice?

How the preset was chosen: all hyperparameters but the last in about 90 runs on seeds 0 and 100 to
105. These helped: non-negative rewards, absorbing a lost object, a tanh network, a common scale of
x, y and z, an adaptive gain, held random actions, 80 updates a cycle (160 were no better), two
critics, a target decay of 0.99. These did not: larger ReLU networks, layer norm, other clips of the
reward, smaller steps of the actor. The last one, T's learning rate of 1e-4 instead of 1e-3, was
chosen on seeds 102 to 107 after seeds 200 and 204 of FetchPush had missed an aim, so these two
seeds are not independent.

The unchanged `ddpg_music`, 160 thousand steps: ten seeds on FetchPush and FetchPickAndPlace, three
on FetchSlide and panda-gym's PandaPush, for which nothing was chosen. The budget was fixed in
advance; settings were chosen on seeds 100 to 107. `music_fresh` has seeds that had not been seen.

On FetchPickAndPlace the ten seeds lift the block and carry it to and fro in the air, 1.7 to 2.2 m
in 50 steps. Settings were chosen on seed 0 and seeds 100 to 107 of FetchPush and FetchPickAndPlace.
Seeds 200 and 204 influenced the last one, the learning rate of the statistics network.
"""

from music_tf.tools.study import CONTROL, LIFTED, Condition, Picture, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"

STUDY = Study(
    question="Does ddpg_music control the block on seeds that nobody tuned on?",
    role="reported",
    tasks=tuple(
        Task(env_id=env_id, seeds=range(200, 200 + seeds), epochs=20, level=level)
        for env_id, seeds, level in (
            (PUSH, 10, CONTROL),
            (PICK, 10, LIFTED),
            ("FetchSlide-v4", 3, CONTROL),
            ("panda_gym:PandaPush-v3", 3, CONTROL),
        )
    ),
    conditions=(Condition(name="music", label="learned T", recipe="ddpg_music"),),
    shown={
        "eval/object_comotion_m": "co-motion (m)",
        "level/steps": "control: seeds, thousand steps",
        "level/held": "control afterwards",
    },
    followed=("eval/object_comotion_m", "reward/music_mean"),
    pictures=tuple(
        Picture(
            name=f"music_holds_{name}",
            metrics=("eval/object_comotion_m", "reward/music_mean"),
            tasks=(task,),
        )
        for name, task in (("push", PUSH), ("pick", PICK))
    ),
)
