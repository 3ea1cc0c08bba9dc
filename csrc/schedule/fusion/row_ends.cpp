#include "schedule/fusion/row_ends.h"

#include <algorithm>

namespace cxxinductor::schedule {
namespace {

constexpr size_t most_regions = 32;  // searched for a reduction

bool is_chosen(const loops::Region& reader, loops::BufferId buffer) {
  int loads = 0, masked = 0;
  for (const loops::Stmt& stmt : reader.body)
    if (const auto* load = stmt.as<loops::Load>(); load && load->buffer == buffer) {
      ++loads;
      masked += load->mask.valid();
    }
  return loads == 1 && masked == 1;
}

bool follows_reduction(const Dependencies& dependencies, StepId producer) {
  std::vector<StepId> open{producer};
  for (size_t next = 0; next < open.size() && open.size() <= most_regions; ++next) {
    for (loops::BufferId buffer : dependencies.summary(open[next]).reads) {
      const auto from = dependencies.producer(buffer);
      if (!from || std::find(open.begin(), open.end(), *from) != open.end()) continue;
      if (!dependencies.summary(*from).reduced.empty()) return true;
      open.push_back(*from);
    }
  }
  return false;
}

}  // namespace

bool ends_rows_of_select(const Dependencies& dependencies, StepId producer, StepId reader, loops::BufferId buffer) {
  const loops::Region* region = dependencies.region(reader);
  return region && dependencies.summary(producer).pointwise() && is_chosen(*region, buffer) && follows_reduction(dependencies, producer);
}

}  // namespace cxxinductor::schedule
