"""Every byte that a model is shown under a mask: a sample, and every mask over every data set."""

import msgspec
import pytest
from mask_checker import MaskCell, capture_masked, check_masks, mask_cells, words_finder

from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.data import list_datasets

SAMPLE = MaskCell(benchmark="ktdfin-v1", mask="blinded", mode="fixed-candidate")


def test_a_sample_shows_nothing_real():
    (found,) = check_masks([SAMPLE], days=1, players=("sensible", "injector"))
    assert found.texts > 4 and found.bytes > 10_000 and not found.hits and not found.refused


def test_what_is_shown_without_a_mask_is_found():
    bright = msgspec.structs.replace(SAMPLE, mask="bright")
    hits = capture_masked(bright, 1, ("sensible",)).hits
    assert any(": code " in hit for hit in hits) and any(": day " in hit for hit in hits)
    with pytest.raises(CheckFailed, match="real words under a mask"):
        check_masks([bright], days=1, players=("sensible",))


@pytest.mark.parametrize("dataset", ["synthetic/us:7", "synthetic/crypto:7"])
def test_another_data_set_is_played_where_it_has_a_past(dataset):
    away = MaskCell(benchmark="ktdfin-us-real-v1", dataset=dataset)
    (found,) = check_masks([away], days=1, players=("sensible",))
    assert found.texts > 4 and not found.refused


def test_short_codes_are_looked_for_in_quotes_and_no_code_is_found_everywhere():
    short, none = words_finder({"IC", "D"}, quoted=True), words_finder(set())
    assert (
        short.search('{"stock_id":"IC"}')
        and not short.search("IC and D are letters")
        and not none.search("IC")
    )


def test_cells_are_every_benchmark_with_masks():
    cells = mask_cells()
    assert {cell.mask for cell in cells} == {"stock-blind", "date-blind", "blinded"}
    assert {"ktdfin-v1", "ktdfin-us-v1"} <= {cell.benchmark for cell in cells} and len(
        set(cells)
    ) == len(cells)


@pytest.mark.slow
@pytest.mark.parametrize("cell", mask_cells(), ids=lambda cell: cell.title)
def test_every_mask_of_every_benchmark(cell):
    check_masks([cell], days=3)


@pytest.mark.slow
def test_every_mask_over_every_data_set_of_this_machine():
    for dataset in [info.name for info in list_datasets() if info.problem is None]:
        for found in check_masks(mask_cells([dataset], modes=("open-research",)), days=2):
            assert found.refused or found.texts
