"""What does it cost to act with the weights of one cycle before?

`--lag 1` lets actors play while the learner learns. The numbers are the same on any ranks, so a
run of one process shows what it does to learning. About eleven minutes a seed of `ddpg_music`, and
thirty of `ddpg_her_fast`, on two cores. The step size of the statistics network is 1e-3 in both.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH = "FetchPush-v4"
RECIPES = {"ddpg_music": (20, " --music.learning-rate 1e-3"), "ddpg_her_fast": (14, "")}

STUDY = Study(
    question="Does lag 1 cost steps or success?",
    role="reported",
    tasks=(Task(env_id=PUSH, seeds=range(260, 265)),),
    conditions=tuple(
        Condition(
            name=f"{recipe.removeprefix('ddpg_')}_lag_{lag}",
            recipe=recipe,
            arguments=f"--lag {lag}{more}",
            epochs={PUSH: epochs},
        )
        for recipe, (epochs, more) in RECIPES.items()
        for lag in (0, 1)
    ),
)
