"""Does MUSIC help a robot to find a block's hidden goal?

FetchPush with hidden goals and dense rewards, preset `laptop`: 32 goals for training and 10 others.
`sac_pearl` has the task's reward alone; `sac_pearl_music` also has the mutual information between
robot and block, at full weight for half of the run and decreasing to 0 at three quarters. Both have
the same number of epochs. At most 30 minutes per run on one core. There are fewer than three seeds,
for want of time.
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
