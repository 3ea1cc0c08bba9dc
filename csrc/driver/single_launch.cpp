#include "driver/single_launch.h"

#include <map>
#include <set>

#include "support/error.h"

namespace cxxinductor::driver {
namespace {

const plan::Launch& first_launch(const plan::Plan& plan, plan::KernelId kernel) {
  for (const plan::Step& step : plan.steps) {
    const auto* launch = std::get_if<plan::Launch>(&step);
    if (launch && launch->kernel == kernel) return *launch;
  }
  throw_internal("no step launches kernel {}", plan.kernels[kernel].name);
}

}  // namespace

plan::Plan single_launch(const plan::Plan& plan, plan::KernelId kernel) {
  plan::Plan single;
  plan::Launch launch = first_launch(plan, kernel);
  launch.kernel = single.kernels.push_back(plan.kernels[kernel]);
  single.name = plan.kernels[kernel].name;
  single.target = plan.target;
  single.arena_device = plan.kernels[kernel].device;
  single.arena_bytes = 0;
  single.origins = plan.origins;

  std::set<std::string> symbols;
  const auto need = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) symbols.insert(std::string(symbol.name()));
  };
  std::map<plan::BufferId, plan::BufferId> copies;
  for (plan::BufferId& arg : launch.args) {
    const auto [found, fresh] = copies.try_emplace(arg);
    if (fresh) {
      plan::Buffer buffer = plan.buffers[arg];
      buffer.kind = plan::Buffer::Kind::Input;
      buffer.arena_offset = 0;
      for (sym::Expr e : buffer.sizes) need(e);
      for (sym::Expr e : buffer.strides) need(e);
      need(buffer.bytes);
      plan::Input input;
      input.source = buffer.name;
      input.buffer = found->second = single.buffers.push_back(std::move(buffer));
      single.inputs.push_back(std::move(input));
    }
    arg = found->second;
  }
  for (sym::Expr e : launch.symbol_args) need(e);
  need(launch.grid_x);
  need(launch.grid_y);
  for (const std::string& symbol : symbols) {
    single.symbols.push_back({symbol, static_cast<uint32_t>(single.inputs.size()), -1});
    plan::Input input;
    input.kind = plan::Input::Kind::Symbol;
    input.symbol = input.source = symbol;
    single.inputs.push_back(std::move(input));
    single.facts.set_range(symbol, plan.facts.range(symbol));
    if (plan.facts.divisor(symbol) != 1) single.facts.set_divisor(symbol, plan.facts.divisor(symbol));
  }
  single.steps.emplace_back(std::move(launch));
  return single;
}

}  // namespace cxxinductor::driver
