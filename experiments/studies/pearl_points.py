"""How well does a point find new places, by the number of episodes that it has seen?

`sac_pearl` on the point robot with dense rewards, preset `laptop`: 20 tasks for training and 10
others for adaptation, drawn for each seed. The preset's beliefs have a full covariance: a step
observes one direction of the latent. The ablation has the paper's diagonal beliefs, where a step
observes each component. A minute per run on one core. Settings were chosen on seeds 100 to 102.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="Does a point find new places from a few episodes, and sooner with a full covariance?",
    role="reported",
    tasks=(Task(env_id="music_tf/PointRobot-v0", seeds=range(300, 305), epochs=10),),
    conditions=tuple(
        Condition(name=name, label=label, recipe="sac_pearl", arguments=f"--agent.posterior {name}")
        for name, label in (
            ("full", "PEARL, full covariance"),
            ("diagonal", "PEARL, diagonal, as published"),
        )
    ),
    shown={
        "adapt/return_prior": "prior",
        "adapt/return_2": "after 2 episodes",
        "adapt/return_last": "after 6",
    },
)
