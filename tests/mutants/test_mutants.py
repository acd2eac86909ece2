import pytest

from tests.mutants.mutants import MUTANTS, ROOT, Mutant


def test_there_are_thirty_mutants_each_with_its_name():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) == 30


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_breaks_the_code(mutant):
    text = (ROOT / mutant.file).read_text()
    broken = mutant.broken(text)
    assert broken != text
    compile(broken, mutant.file, "exec")
    assert (ROOT / mutant.first).exists()


@pytest.mark.parametrize("text", ["", "a - b\na - b\n"])
def test_a_mutant_whose_place_is_not_found_once_is_named(text):
    with pytest.raises(ValueError, match=r"a-sign: found [02] times in module\.py"):
        Mutant("a-sign", "module.py", "a - b", "a + b", "tests").broken(text)
