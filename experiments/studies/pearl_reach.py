"""Does a robot find a hidden place for its gripper from the rewards of two episodes?

`sac_pearl` on FetchReach with hidden goals and dense rewards, preset `laptop`: 32 goals to train on
and 10 others. Under latents of the prior, success should be rare. Scales of contexts, their number
of rows, the KL weight and the length of runs were chosen on seed 100, after earlier settings with
raw observations and rewards had given 0.40 after 6 episodes on seeds 300 to 302, in 262 thousand
steps (5b13c83, 53c0837); with the settings of today those seeds gave 0.81 (5d20db8), and the seeds
here are fresh. 5 minutes per run on one core, and 4 for its evaluation.

102 thousand steps. The aim, a success of 0.8 after two episodes, is missed.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a gripper find a hidden place from two episodes?",
    role="reported",
    tasks=(Task(env_id="music_tf/FetchReachHiddenGoal-v0", seeds=range(350, 353), epochs=15),),
    conditions=(Condition(name="pearl", label="PEARL", recipe="sac_pearl"),),
    shown={
        "adapt/success_prior": "success, prior",
        "adapt/success_2": "after 2 episodes",
        "adapt/success_last": "after 6",
    },
)
