import pytest

from hf_vat.errors import InputError
from hf_vat.report import Table, table


def test_columns_are_aligned():
    assert table(["system", "AOPC", "test"], [["ATT", "9.10", "McNemar"], ["VAT", "12.30", "t"]]).splitlines() == [
        "system   AOPC  test",
        "------  -----  -------",
        "ATT      9.10  McNemar",
        "VAT     12.30  t",
    ]


@pytest.mark.parametrize(
    ("cell", "numeric"),
    [
        ("9.1", True),
        (".5", True),
        ("-1.2 [-3.0, 4.0]", True),
        ("−1.2", True),
        ("+4 %", True),
        ("< 0.001", True),
        ("— / 52.3 ± 1.0", True),
        ("—", True),
        ("", True),
        ("recall@5", False),
        ("-", True),
        ("a", False),
        ("—a", False),
    ],
)
def test_a_column_is_numeric_if_its_cells_begin_with_numbers(cell, numeric):
    assert Table("", ["first", "second"], [["1", "0.5"], ["2", cell]]).numeric == [False, numeric]


@pytest.mark.parametrize("make", [table, lambda columns, rows: Table("heading", columns, rows)])
def test_c86_rows_of_another_length_are_refused(make):
    with pytest.raises(InputError, match="2 cells for 1 columns"):
        make(["a"], [["b", "c"]])
