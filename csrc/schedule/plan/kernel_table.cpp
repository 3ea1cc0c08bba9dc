#include "schedule/plan/kernel_table.h"

#include <fmt/format.h>

#include <utility>

#include "ir/plan/text.h"

namespace cxxinductor::schedule {

plan::KernelId KernelTable::intern(plan::Kernel kernel, std::string_view hint) {
  const int64_t read = std::exchange(kernel.bytes_read_hint, 0), written = std::exchange(kernel.bytes_written_hint, 0);
  kernel.name = kernel.region.name = "k";
  auto [found, is_new] = kernels_.try_emplace(plan::print(kernel), plan::KernelId(plan_.kernels.size()));
  if (is_new) {
    kernel.bytes_read_hint = read;
    kernel.bytes_written_hint = written;
    kernel.name = kernel.region.name = fmt::format("k{}_{}", plan_.kernels.size(), hint);
    plan_.kernels.push_back(std::move(kernel));
  }
  return found->second;
}

std::string KernelTable::hint_of(const plan::Kernel& kernel) {
  const size_t underscore = kernel.name.find('_');
  return underscore == std::string::npos ? kernel.name : kernel.name.substr(underscore + 1);
}

}  // namespace cxxinductor::schedule
