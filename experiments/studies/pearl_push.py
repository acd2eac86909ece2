"""Does MUSIC help a robot to find where a block shall go when nobody shows it?

FetchPush with hidden goals and dense rewards, preset `laptop`: 32 goals to train on and 10 others.
`sac_pearl` is paid by the task alone; `sac_pearl_music` by the mutual information between robot and
block too, in full for half a run and less and less up to three quarters. Both have as many epochs.
At most 30 minutes a run on one core. There are fewer than three seeds, for want of time.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does mutual information help meta-training on hidden goals for a block?",
    role="reported",
    tasks=(
        Task(env_id="music_tf/FetchPushHiddenGoal-v0", seeds=(300, 301), epochs=40, minutes=30),
    ),
    conditions=(
        Condition(name="pearl", label="PEARL", recipe="sac_pearl"),
        Condition(name="music", label="PEARL and MUSIC", recipe="sac_pearl_music"),
    ),
    shown={
        "adapt/success_prior": "success, prior",
        "adapt/success_2": "after 2 episodes",
        "adapt/success_last": "after 6",
    },
)
