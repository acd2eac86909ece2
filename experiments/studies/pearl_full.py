"""Does a point find places sooner when its beliefs have a full covariance?

The runs of `pearl_points` with `--agent.posterior full` and nothing else changed: a step observes
one direction of the latent, where in `pearl_points` it weighs places number by number. A minute
a run on one core. Whether to measure it was decided on seeds 100 to 102.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a point find new places sooner when its beliefs have a full covariance?",
    role="reported",
    tasks=(Task(env_id="music_tf/PointRobot-v0", seeds=range(300, 305), epochs=10),),
    conditions=(
        Condition(
            name="full",
            label="full covariance",
            recipe="sac_pearl",
            arguments="--agent.posterior full",
        ),
    ),
    shown={
        "adapt/return_prior": "prior",
        "adapt/return_1": "after 1 episode",
        "adapt/return_2": "after 2",
        "adapt/return_last": "after 6",
        "adapt/train_return": "training tasks, after 6",
        "adapt/probe_r2": "R² of the probe",
    },
)
