#include "driver/single_launch.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/error.h"

namespace cxxinductor::driver {
namespace {

struct Found {
  plan::Step step;
  sym::Assumptions assumptions;  // of the plan, and those that a specialization needs
};

Found first_launch(const plan::Plan& plan, plan::KernelId kernel) {
  for (const plan::Step& step : plan.steps) {
    const auto launches = plan::launches_of(step);
    if (launches.empty()) continue;
    for (const plan::Specialization& special : launches[0].specializations)
      if (special.kernel == kernel) return {plan::specialized(launches[0], special), joined(plan.assumptions, special.when)};
    if (launches[0].kernel != kernel) continue;
    Found found{step, plan.assumptions};
    if (auto* launch = std::get_if<plan::Launch>(&found.step)) launch->specializations.clear();
    return found;
  }
  throw_internal("no step launches kernel {}", plan.kernels[kernel].name);
}

}  // namespace

plan::Plan single_launch(const plan::Plan& plan, plan::KernelId kernel) {
  plan::Plan single;
  auto [step, assumptions] = first_launch(plan, kernel);
  const plan::KernelId copy = single.kernels.push_back(plan.kernels[kernel]);
  single.name = plan.kernels[kernel].name;
  single.target = to_string(plan.kernels[kernel].device.type);
  single.devices = {plan.kernels[kernel].device};
  single.origins = plan.origins;

  std::set<std::string> symbols;
  const auto need = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) symbols.insert(std::string(symbol.name()));
  };
  std::map<plan::BufferId, plan::BufferId> copies;
  const auto take = [&](plan::BufferId& arg) {
    const auto [found, fresh] = copies.try_emplace(arg);
    if (fresh) {
      plan::Buffer buffer = plan.buffers[arg];
      buffer.kind = plan::Buffer::Kind::Input;
      buffer.arena = 0;
      buffer.arena_offset = buffer.base_offset = 0;
      if (std::find(single.devices.begin(), single.devices.end(), buffer.device) == single.devices.end()) single.devices.push_back(buffer.device);
      for (sym::Expr e : buffer.sizes) need(e);
      for (sym::Expr e : buffer.strides) need(e);
      need(buffer.bytes);
      plan::Input input;
      input.source = buffer.name;
      input.buffer = found->second = single.buffers.push_back(std::move(buffer));
      single.inputs.push_back(std::move(input));
    }
    arg = found->second;
  };
  const auto take_launch = [&](plan::Launch& launch) {
    launch.kernel = copy;
    for (plan::BufferId& arg : launch.args) take(arg);
    for (sym::Expr e : launch.symbol_args) need(e);
    need(launch.grid_x);
    need(launch.grid_y);
  };
  if (auto* launch = std::get_if<plan::Launch>(&step)) take_launch(*launch);
  if (auto* group = std::get_if<plan::GroupedLaunch>(&step)) {
    const auto most = static_cast<size_t>(plan.kernels[kernel].max_grouped);  // one launch of the device's
    if (group->launches.size() > most) group->launches.erase(group->launches.begin() + most, group->launches.end());
    for (plan::Launch& each : group->launches) take_launch(each);
  }
  for (const std::string& symbol : symbols) {
    single.symbols.push_back({symbol, static_cast<uint32_t>(single.inputs.size()), -1});
    plan::Input input;
    input.kind = plan::Input::Kind::Symbol;
    input.symbol = input.source = symbol;
    single.inputs.push_back(std::move(input));
    single.assumptions.set_range(symbol, assumptions.range(symbol));
    if (assumptions.divisor(symbol) != 1) single.assumptions.set_divisor(symbol, assumptions.divisor(symbol));
  }
  single.steps.push_back(std::move(step));
  return single;
}

}  // namespace cxxinductor::driver
