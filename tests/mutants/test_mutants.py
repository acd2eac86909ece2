import pytest

from tests.mutants import mutants
from tests.mutants.mutants import MUTANTS, ROOT, Mutant

FOLDERS = (
    *("agents", "envs", "intrinsic", "losses", "measures", "networks", "replay", "storage"),
    "training",
)


def test_every_file_that_computes_or_keeps_numbers_has_a_mutant_and_each_its_name():
    files = {path for folder in FOLDERS for path in (ROOT / "music_tf" / folder).glob("*.py")}
    lacking = files - {ROOT / mutant.file for mutant in MUTANTS}
    assert {path.name for path in lacking} == {"__init__.py"}
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_still_breaks_the_code():
    faults = []
    for mutant in MUTANTS:
        try:
            text = (ROOT / mutant.file).read_text()
            broken = mutant.broken(text)
            compile(broken, mutant.file, "exec")
        except (OSError, ValueError, SyntaxError) as fault:
            faults.append(f"{mutant.name}: {fault}")
            continue
        if broken == text or not (ROOT / mutant.first).exists():
            faults.append(f"{mutant.name}: changes nothing, or {mutant.first} is missing")
    assert faults == []


@pytest.mark.parametrize("text", ["", "a - b\na - b\n"])
def test_a_mutant_whose_place_is_not_found_once_is_named(text):
    with pytest.raises(ValueError, match=r"a-sign: found [02] times in module\.py"):
        Mutant("a-sign", "module.py", "a - b", "a + b", "tests").broken(text)


def test_a_test_that_is_red_anyway_kills_nothing(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text("a + b")
    monkeypatch.setattr(mutants, "noticed", lambda *_: "near::test")
    with pytest.raises(RuntimeError, match="near::test is red without a mutant"):
        mutants.killer_of(Mutant("sum", "module.py", "a + b", "a - b", "near"), tmp_path, True)
