"""Each rule of settings is broken once; a rule without a line here fails."""

import ast
import shlex
import traceback
from pathlib import Path

import pytest

import music_tf
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train

PACKAGE = Path(music_tf.__file__).parent
FILES = [
    PACKAGE / "config" / f"{name}.py" for name in ("settings", "conditioning", "agents", "terms")
]
FILES += sorted((PACKAGE / "recipes").glob("*.py"))
TILED = "--preset qdax --env-id Hopper-v5 --skills 3"
BALL = "--condition.kind ball"
GROUPS = f"{BALL} --condition.groups 2 --distance.speed 0.4"
FROZEN = "--distance.train False --distance.rest-until -1"
BOX = "ddpg_her --env-id music_tf/UnitBox-v0 --collect.steps 9 --condition.kind"
CHUNKS = "--agent.encoder gru --agent.context-chunk"
LATE = '--env.changes \'[{}, {"at": {"skill": 4}}]\''
RULES = {  # a command line, and parts of the answer
    f"sac_diayn {LATE}": ["stage 1: at: this run learns its skills together", '{"steps": N}'],
    f"sac_disk {LATE}": ['last of 4 skills is 3, got 4\nnearest: {"skill": 3}, or --skills 5'],
    "skills_controller --env.skills run --agent.discount 0.9": ["0.99", "got 0.9\n"],
    "skills_controller": [
        "--env.skills RUN is missing",
        "Ant-v0 --skills 5",
        "--env.skills latest",
    ],
    "ddpg --exploration.sample True": ["expected False for a deterministic policy"],
    "sac --env-id Hopper-v5 --exploration.random-hold 4": ["whole episodes, got collect.steps 50"],
    "sac --env.kwargs '{\"max_episode_steps\": 9}' --env.max-episode-steps 5": [
        "would replace that of"
    ],
    "ddpg --replay.priority musik": ["uniform, or a reward of the run", "'musik'; this run has "],
    "sac_diayn --evaluation.length 30": ["one after the other", "--env.max-episode-steps 30"],
    "sac --agent.entropy-mode next_state --agent.return-clip paid": ["'paid'", "values include"],
    "ddpg --agent.actor-every 2": ["update-order: expected sequential", "actor_every 2, got simul"],
    "ddpg --agent.critics 2 --agent.target-critics 2": ["below agent.critics, 2, got 2"],
    "sac_pearl --evaluation.every-cycles 6": ["one task, expected none, got 6\n", "every 1"],
    # weights that follow the robot
    "ddpg --task.weight-by moved": ["two or more levels from 0 to 1", "got 0 1\n", "0.5 0 0.8 1"],
    "ddpg_her_fast --task.weight-by lifted": ["weight_by lifted, got 0 0 3 0 5 1\nfor example: --"],
    "ddpg --task.weight-by moved --task.weight -0.1 0 1 1": ["levels from 0 to 1", "got -0.1 0"],
    "ddpg --task.weight-by moved --task.weight 0.8 0 0.5 1": ["increasing epochs or levels"],
    "ddpg --task.weight-latest 9": ["None by epoch, got 9\nfor example: --task.weight-latest None"],
    "ddpg --task.weight-episodes 5": ["expected 40 by epoch, got 5\n", "--task.weight-by moved"],
    "sac --env-id Hopper-v5 --task.weight-by moved --task.weight 0.5 0 1 1": [
        "--task.weight-by: moved counts whole episodes, expected epoch with collect.steps 50"
    ],
    # conditions
    "sac_diayn --skills 4 --condition.size 3": ["expected 4, as skills says, got 3"],
    "sac_diayn_finetune --pinned-skill 5 --init-from run": ["number in [0, 4], got 5"],
    "sac_lsd --skills 3": ["one_hot for skills 3 and pinned_skill None, got sphere"],
    "sac_lsd --pinned-skill 0": ["and pinned_skill 0, got sphere", "--pinned-skill None"],
    "sac_pearl --condition.size 4": ["expected 10, as agent.latent_size says, got 4"],
    f"{BOX} gaussian": ["a gaussian condition has, got none", "--condition.size 2"],
    f"{BOX} sphere --condition.size 4 --condition.groups 2": [
        "a size that 2 divides, got sphere of size 4\nnearest: --condition.kind ball --condition.s"
    ],
    f"{BOX} ball --condition.size 5 --condition.groups 2": ["got ball of size 5\nnearest"],
    f"{BOX} box --condition.size 2 --condition.sampler tiled": ["tiled", "for condition.kind box"],
    "sac_diayn --rewards task --pinned-skill 1 --condition.sampler tiled": ["pinned_skill 1"],
    f"sac_diayn {TILED}": ["multiple of 3 environments", "x rollouts 10 = 10", "--rollouts 9"],
    f"{BOX} one_hot --condition.every 7": ["may change, got skills 1", "leave it out"],
    f"{BOX} box --condition.size 4 --condition.every 7 --collect.steps None": [
        "another every 7 steps\nfor example: --collect.steps 50 --replay.draw steps"
    ],
    "ddpg_her --skills 3 --condition.every 7": ["--replay.draw steps --replay.relabel-k 0"],
    "ddpg --condition.relabel 0.5": ["skills 1, pinned_skill None", "--condition.relabel 0"],
    # skills one after the other
    "sac_disk --rewards task": ["tells a skill from earlier ones, got task; for example --rewards"],
    "sac_disk --pinned-skill 1": ["one skill acts at a time", "pinned_skill 1; leave all out"],
    "sac_disk --condition.sampler stratified": ["one skill acts", "condition.sampler stratified"],
    "sac_disk --incremental.epochs 2 3": ["one for each of 4 skills, got 2\nnearest: --skills 2"],
    "sac_disk --epochs 9": ["skills together, 16, got 9\n", "nearest: --skills 2"],
    "sac_disk --skills 2 --incremental.epochs 2 3 --epochs 9": ["nearest: --epochs 5"],
    "sac_diayn --rewards disk": ["epochs of each, got none\nfor example: --incremental.epochs 4"],
    "sac_disk --disk.k 9 --disk.rows 8": ["disk.rows: expected at least disk.k = 9, got 8"],
    "sac_disk --disk.descriptor stride": ["add --world.extras stride=stride:20"],
    "sac_disk --disk.timesteps equal": ["add --world.extras time=time"],
    "sac_disk --disk.balance released --disk.alpha 0": ["expected both above 0"],
    "sac_disk --disk.weight 0 1 7 1 8 0": ["of skill 2\nfor example: --disk.weight 0 1 3 1 4 1"],
    # tasks
    "sac --tasks.train 4": ["need an agent that infers", "got 4", "sac_pearl"],
    "sac --condition.kind belief": ["condition.kind belief\nrecipes for it: sac_pearl"],
    "sac_pearl --tasks.test 0": ["expected at least 1 of each, got 20 and 0"],
    "sac_pearl --condition.kind gaussian": ["expected belief", "got gaussian; leave it out"],
    "sac_pearl --tasks.train 30": ["multiple of workers 4", "got 30; nearest: 32"],
    "sac_pearl --collect.steps 5": ["whole episodes; leave --collect.steps out"],
    "sac_pearl --collect.random-steps 5": ["under the prior; leave --collect.random-steps out"],
    "sac_pearl --env.changes [{}]": ["env.changes: tasks do not change"],
    "sac_pearl --replay.relabel-k 4": ["inferred, not shown as a goal; leave --replay.relabel-k"],
    "sac_pearl --goals zero": ["inferred, not shown as a goal; leave --goals out"],
    "sac_pearl --replay.draw episodes": ["kept apart by steps; leave --replay.draw out"],
    "sac_pearl --agent.update-order actor_first": ["expected simultaneous or sequential, got act"],
    "sac_pearl --agent.meta-batch 6": ["multiple of workers 4, got 6; nearest: 8"],
    "sac_pearl --agent.context-chunk 20": ["encoder mlp, got 20", "add --agent.encoder gru"],
    f"sac_pearl {CHUNKS} 30": ["divisor of 40", "got 30; nearest: 20"],
    "sac_pearl --replay.batch-size 129": ["multiple of 2", "got 129; nearest: 128"],
    f"sac_pearl {CHUNKS} 5 --replay.batch-size 120": ["multiple of 16", "got 120; nearest: 128"],
    # rewards for skills
    "sac_smerl --skill.target 3 --skill.margin None": ["skill.target", "no margin"],
    "sac_dads_smerl --dads.target None": ["dads.margin", "no target", "--dads.target 1000"],
    "sac_smerl --skill.target inf": ["expected a number or None, got inf"],
    "sac_pearl --rewards task dads": ["dads rewards conditions that are drawn"],
    "sac_diayn --skills 1": ["several that act, got 1\nexpected --skills 2 or more"],
    "sac_diayn --pinned-skill 0": ["that act, got 1\nexpected --pinned-skill None"],
    f"sac_diayn {TILED} --rollouts 3 --skill.prior learned": ["skill.prior", "sampler tiled"],
    "sac_diayn --skill.posterior gaussian": ["skill.posterior", "gaussian for condition.kind one"],
    "sac_diayn --skills 1 --condition.kind box --condition.size 3 --skill.posterior "
    "von_mises_fisher": ["on the sphere alone, got von_mises_fisher for condition.kind box"],
    "sac_diayn --skills 1 --condition.kind sphere --condition.size 1": ["or --condition.size 2"],
    "sac_disk --rewards skill disk --skill.prior learned": ["they take turns, expected uniform"],
    # ways along a direction
    "sac_metra --condition.kind box": ["sphere, ball or one_hot, got box"],
    "sac_metra --distance.speed -1": ["distance.speed: expected a number above 0 or", "got -1.0"],
    f"sac_metra {BALL} --distance.speed 0.4 --distance.reach 7": ["no groups or distance.speed"],
    "sac_lsd --distance.speed auto": ["auto with condition.kind sphere", "condition.kind ball"],
    f"sac_lsd {BALL}": ["inf with condition.kind ball", "--distance.speed auto"],
    f"sac_metra {GROUPS} --condition.size 2": ["embedding that never learns, as of sac_place"],
    f"sac_metra {GROUPS} --condition.size 4 {FROZEN}": ["2 columns, got 4", "condition.size 2"],
    f"sac_metra {FROZEN} --condition.size 1": ["copy of 2 columns that never learns", "got 1"],
    "sac_metra --distance.density-early True": ["no effect without a density, expected False"],
    "sac_metra --distance.modelled 3": ["(3,) has no effect", "--distance.distance density"],
    "sac_metra --distance.train False": ["0.25 has no effect", "--distance.train True"],
    "sac_lsd --distance.norm sum": ["without a dual variable", "--distance.constraint dual"],
    # influence
    "ddpg_cai --influence.candidates 6 --exploration.random-hold 4": ["random-hold 1, got 4"],
    "sac_pearl --rewards task influence --influence.candidates 4": ["candidates 0, got 4"],
    "sac_her --rewards influence --influence.candidates 6": [
        "--exploration.random-probability 0.3"
    ],
    "skills_controller --rewards influence": ["continuous actions, got DiscreteSacConfig"],
}
OF_PYTHON = ("at least one term", "expected settings by name", "as its name, got")
"""What no command line can break."""


def rules():
    """Places of all refusals of settings: file, first and last line."""
    for file in FILES:
        for function in ast.walk(ast.parse(file.read_text())):
            if not getattr(function, "name", "").startswith(("check", "_check", "__post_init")):
                continue
            for node in ast.walk(function):
                text = ast.unparse(node) if isinstance(node, ast.Raise) else ""
                if text and not any(part in text for part in OF_PYTHON):
                    yield file, node.lineno, node.end_lineno


def test_every_rule_is_broken_by_a_line_here_and_says_in_three_lines_what_would_do():
    unbroken, wrong = set(rules()), []
    for words, parts in RULES.items():
        with pytest.raises(UsageError) as caught:
            parse_train(shlex.split(words))
        text, fault = str(caught.value), caught.value
        if isinstance(fault.__cause__, UsageError):  # before it was named as typed
            fault = fault.__cause__
        last = traceback.extract_tb(fault.__traceback__)[-1]
        missing = [part for part in parts if part not in text]
        if missing or len(text.splitlines()) > 3:
            wrong.append((words, missing, text))
        unbroken -= {
            (file, first, end)
            for file, first, end in unbroken
            if str(file) == last.filename and first <= last.lineno <= end
        }
    assert (wrong, unbroken) == ([], set())
