"""The manifest and the tests agree, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import requirements
from tests.requirements import REQUIREMENTS
from tests.seeds import DELIVERED, ISSUES, UNDER_WAY, section
from tests.seeds.faults import FAULTS
from tools import seeds_page
from tools.requirement_scan import ROOT, Claim, ClaimError, scan, scan_file


@pytest.fixture(scope="module")
def claimed() -> dict[str, list[Claim]]:
    return seeds_page.claims_by_id()


def test_every_live_entry_has_a_test(claimed: dict[str, list[Claim]]) -> None:
    assert [entry.id for entry in seeds_page.missing(claimed)] == []


def test_every_claim_names_an_entry(claimed: dict[str, list[Claim]]) -> None:
    assert sorted(claimed.keys() - REQUIREMENTS.keys()) == []


def test_no_deferred_entry_is_already_tested(claimed: dict[str, list[Claim]]) -> None:
    known = [REQUIREMENTS[name] for name in claimed if name in REQUIREMENTS]
    assert [e.id for e in known if e.deferred and e.issue not in UNDER_WAY] == []


def test_an_issue_is_either_delivered_or_under_way_or_later() -> None:
    assert set() == DELIVERED & UNDER_WAY
    assert ISSUES.keys() >= DELIVERED | UNDER_WAY


def test_the_code_of_every_live_entry_exists() -> None:
    live = [entry for entry in REQUIREMENTS.values() if entry.deferred is None]
    assert [entry.id for entry in live if not entry.code] == []
    codes = {entry.code for entry in live}
    assert sorted(code for code in codes if not (ROOT / "src" / "ctxgc" / code).exists()) == []


def test_every_entry_is_one_sentence_and_every_difference_is_said_in_sentences() -> None:
    texts = {e.id: (e.says, e.differs or ".", *e.doors.values()) for e in REQUIREMENTS.values()}
    texts |= {f"fault of {f.entry}": (f.written, f.mended) for f in FAULTS}
    assert [name for name, each in texts.items() for t in each if t[-1] != "." or "\n" in t] == []


def test_a_difference_of_a_part_that_a_section_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"S9\.made has no part b"):
        list(section("S9.made", "Made", {"a": "It is."}, issue=2, differs={"b": "It is not."}))


def test_a_door_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"S9\.made names no door: window"):
        list(
            section("S9.made", "Made", {"a": "It is."}, issue=2, doors={"a": {"window": "It is."}})
        )


def test_every_fault_of_a_seed_belongs_to_an_entry_and_is_listed_once() -> None:
    assert [fault.entry for fault in FAULTS if fault.entry not in REQUIREMENTS] == []
    assert len({(fault.entry, fault.written) for fault in FAULTS}) == len(FAULTS)


def test_the_seeds_page_is_current() -> None:
    assert seeds_page.main(["--check"]) == 0


def test_an_unknown_id_raises_and_names_the_nearest() -> None:
    with pytest.raises(LookupError, match=r"nearest: S1\.roots\.pinned"):
        requirements.requirement("S1.roots.pined")


def test_a_claim_without_an_id_raises() -> None:
    with pytest.raises(LookupError, match="names no entry"):
        requirements.requirement()


SAMPLE = """\
pytestmark = requirement("a")

@requirement("b", "c")
def test_one(): ...

class TestTwo:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=requirement("d"))])
    async def test_inner(self, x): ...

TestMachine = requirement("e")(Machine.TestCase)
"""


def test_the_scan_finds_claims_on_functions_methods_parameters_and_modules(tmp_path: Path) -> None:
    (tmp_path / "tests" / "room").mkdir(parents=True)
    file = tmp_path / "tests" / "room" / "test_sample.py"
    file.write_text(SAMPLE, encoding="utf-8")
    (tmp_path / "tests" / "helper.py").write_text('requirement("z")', encoding="utf-8")
    place = "tests/room/test_sample.py"
    assert scan(tmp_path) == [
        Claim("a", place, "", 1),
        Claim("b", place, "test_one", 3),
        Claim("c", place, "test_one", 3),
        Claim("d", place, "test_inner", 7),
        Claim("e", place, "TestMachine", 10),
    ]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('@requirement("a")\ndef helper(): ...', "marks no test"),
        ('def test_a():\n    requirement("a")', "marks no test"),
        ("@requirement(NAME)\ndef test_a(): ...", "string literals only"),
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(
    tmp_path: Path, source: str, complaint: str
) -> None:
    file = tmp_path / "test_sample.py"
    file.write_text(source, encoding="utf-8")
    with pytest.raises(ClaimError, match=complaint):
        scan_file(file, tmp_path)
