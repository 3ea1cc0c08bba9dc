"""Names that the project no longer uses, as regular expressions, and what to write instead. check_layers.py rejects them."""

import re

_NAMES = """
RegionFacts RegionSummary
CudaDeviceFacts CudaDeviceProperties
sym::Facts sym::Assumptions
host_numbers host_constants
place_parts alias_concat_operands
PartTable SliceRecord
Kind::Part Kind::Slice
Hole OperandRef
for_each_hole for_each_operand_ref
HoleFillings kernels::Values
fill_holes render_template
find_choice find_select_region
rests_of uncovered_ranges
cut_region partition_region
random_words random_bits
mapping_words fields
home_words memory_space_keywords
fold_positions propagate_indices
graph-positions graph-propagate-indices
interp::Window interp::MemRef
Kind::Own Kind::Standalone
walk_rows fuse_mixed_order_reductions
walked_var serial_var
mapping\\.walk plan::SerialRows
open_products lower_matmuls
ProductSize MatmulSize
estimate_product estimate_matmul
Home:: MemorySpace::
join_siblings fuse_siblings
cxxi_join_\\w+ cxxi_block_reduce
mapping\\.resident is_persistent
choose_residents choose_persistent_values
schedule_resident schedule_persistent
Kind::Once Kind::PerRow
Kind::Sweep Kind::RowLoop
Kind::Finish Kind::Epilogue
infer_lifetimes infer_liveness
Lifespans LiveRangeBudget
FusionReach LiveRangeLimit
points_may_meet has_write_conflicts
Refusal MissedFusion
refuse_region fusion_blocker
refusals\\.txt missed_fusions.txt
StridedDraw GridStrideSampler
draws_in_fours philox_vec4
traits\\.draws traits.random
split_preparation split_const_graph
PreparedInputs FoldedConstants
load[.>-]+otherwise load.other
contract_of numerics_guarantee_of
contract_facts accuracy_details
given_up donated
give_up_inputs donate_inputs
_make_again _mark_must_recompute
consume_bases reinplace_scatters
graph-consume graph-reinplace
LaunchTable LaunchRecord
BatchTable GroupedLaunchRecord
plan::Batch plan::GroupedLaunch
strip_state column_tile_state
typical_value size_hint
typical_bytes bytes_hint
require_sound require_valid
unsound invalid
any_strides flexible_strides
free_outputs flexible_outputs
graph_fallback aten_fallback
is_throughput_device is_simt
is_gpu is_simt
is_of_gpu is_simt
needed_beyond has_other_users
handed_out_ live_out_
finish_compiles wait_for_compiles
run_later run_in_background
Takeover BufferReuse
take_over reuse_storage
mapping\\.band Matmul::group_m
MappingKind plan::Shape
drop_roundings elide_rounding_casts
loops-roundings loops-elide-rounding-casts
Observations MaskedLoadUses
cone_of backward_slice
choose_one_hot one_hot_to_select
order_for_memory reorder_for_peak_memory
graph-common graph-cse
max_fused_statements max_fusion_size
CXXINDUCTOR_DISABLE CXXINDUCTOR_SKIP_PASSES
CXXINDUCTOR_MAX_FUSED_STATEMENTS CXXINDUCTOR_MAX_FUSION_SIZE
"""
# Files that speak of the old names: this table, the errors that old names give, and their tests.
ALLOWED_IN = {
    "tools/retired_names.py",
    "tests/python/test_check_layers.py",
    "csrc/support/renamed_options.def",
    "tests/unit/support/options_test.cpp",
    "python/cxxinductor/__init__.py",
    "tests/python/test_explain.py",
}

_PAIRS = [line.split() for line in _NAMES.strip().splitlines()]
_PLAIN = {old: new for old, new in _PAIRS if old.isidentifier()}
# Others begin with letters that a text has to hold before their expression is tried.
_OTHERS = [(re.match(r"[A-Za-z_]+", old).group(0), re.compile(rf"(?<!\w){old}" + ("" if old.endswith(":") else r"(?!\w)")), new)
           for old, new in _PAIRS if not old.isidentifier()]  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*")


def retired_names(text: str) -> list[tuple[int, str, str]]:
    """(line number, old name, new name) of each retired name in the text."""
    found = []
    words = set(_WORD.findall(text))
    for old in words & _PLAIN.keys():
        found += [(match.start(), old, _PLAIN[old]) for match in re.finditer(rf"\b{old}\b", text)]
    for start, pattern, new in _OTHERS:
        if start in words or any(word.startswith(start) for word in words):
            found += [(match.start(), match.group(0), new) for match in pattern.finditer(text)]
    return [(text.count("\n", 0, at) + 1, old, new) for at, old, new in sorted(found)]
