"""Do four skills of a cheetah differ after 40 thousand steps, learned one by one or at once?

HalfCheetah in episodes of 200 steps. `sac_disk`, preset `laptop`, learns four skills of 10,000
steps each and compares them by the displacement over the last 20 steps. The baseline `sac_diayn`
has the same numbers of skills, steps and updates, the same networks and learning rates, and a
discriminator of x and z. All are measured by x and z, and so are random actions.

Two to four minutes per run on one core. Settings of `sac_disk` were chosen on seeds 100 to 102;
those of `sac_diayn` follow from them.
"""

from music_tf.tools.study import Condition, Study, Task

_DIAYN = """
--skills 4 --cycles 40 --agent.hidden-sizes 128 128 --agent.actor-learning-rate 1e-3
--agent.critic-learning-rate 1e-3 --agent.temperature-learning-rate 1e-3
--skill.hidden-sizes 128 128 --skill.learning-rate 1e-3 --replay.batch-size 128
--collect.random-steps 2000 --collect.updates-per-step 0.5
--env.max-episode-steps 200 --world.descriptor plane
"""

STUDY = Study(
    question="How far do four skills of a cheetah part within 40 thousand steps?",
    role="reported",
    tasks=(Task(env_id="HalfCheetah-v5", seeds=range(290, 293), epochs=20, minutes=20),),
    conditions=(
        Condition(name="disk", label="DISk, few steps", recipe="sac_disk"),
        Condition(name="diayn", label="DIAYN, few steps", recipe="sac_diayn", arguments=_DIAYN),
    ),
    shown={
        "skill/hausdorff_mean": "mean Hausdorff distance (m)",
        "skill/hausdorff_min": "least (m)",
        "skill/spread": "spread within a skill (m)",
    },
)
