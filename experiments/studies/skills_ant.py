"""Do the skills of an ant spread over the plane, and how useful are they for a task in it?

Five skills differ in x and y, with 500 thousand steps in episodes of 100 and a quarter of
an update per step. The learned temperature of `cool` starts at 0.02, as chosen on seed 100. That of
`skills` starts at 1, as in the preset: it takes a quarter of the steps to decrease, and nothing is
learned meanwhile.

Then goals in the plane: a controller chooses among the frozen skills of `cool`, seed 240, every ten
steps, for 200 thousand steps of the simulator. `sac` from scratch takes the same number of steps,
and `sac_counted` takes those of the skills as well.

`music_tf/Ant-v0` is Ant-v5 without contact forces and with x and y at the start of its observation,
as in the task. The skills take about 25 minutes per run on one core, the controller 4, `sac` 10,
`sac_counted` 30. So three seeds of all take about five hours; those of `cool` come first.

Most skills stop after half a metre. A controller of them gets farther at equal steps (0.62 m
against 0.14), but not once the steps of its skills are counted (2.66 m), one seed each. A return of
AntGoals is the distance in metres by which the ant approached a goal 4 m away; that of a controller
discounts the ten steps of a choice by 0.99 each and is about 4 % smaller. Runs had `--skill.batch
own`.

Seed 240 of `cool`: paths of its skills in metres, which skill is taken for which, and films.

![paths of five skills of an ant](../../../docs/images/skills_ant.png)

![three of these skills](../../../docs/images/skills_ant_strip.png)
"""

from music_tf.tools.study import Condition, Study, Task

PLANE, GOALS = "music_tf/Ant-v0", "music_tf/AntGoals-v0"
SKILLS = "--env.skills runs/studies/skills_ant/cool/music_tf_Ant-v0/seed240"
SLOW = "--collect.updates-per-step 0.25"
APART = (
    "--preset qdax --rollouts 25 --world.descriptor 0 1 --env.max-episode-steps 100 "
    '--env.kwargs \'{"forward_reward_weight": 0, "contact_cost_weight": 0}\''
)
COOL = f"{APART} --agent.temperature 0.02"
SEEDS = range(240, 243)

STUDY = Study(
    question="How far do the skills of an ant part, and does a controller of them reach goals?",
    role="reported",
    tasks=(Task(env_id=PLANE, seeds=SEEDS, epochs=40), Task(env_id=GOALS, seeds=SEEDS, epochs=20)),
    conditions=tuple(
        Condition(
            name=name,
            label=label,
            recipe=recipe,
            arguments=arguments,
            tasks=(task,),
            epochs=epochs,
        )
        for name, label, recipe, arguments, task, epochs in (
            ("cool", "DIAYN, temperature from 0.02", "sac_diayn", COOL, PLANE, {}),
            ("skills", "DIAYN, temperature from 1", "sac_diayn", APART, PLANE, {}),
            ("controller", "controller of five skills", "skills_controller", SKILLS, GOALS, {}),
            ("sac", "`sac`", "sac", SLOW, GOALS, {GOALS: 40}),
            (
                "sac_counted",
                "`sac`, steps of the skills counted",
                "sac",
                SLOW,
                GOALS,
                {GOALS: 140},
            ),
        )
    ),
    shown={
        "eval/return": "return",
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/mean/skill/diversity_return": "diversity return",
    },
)
