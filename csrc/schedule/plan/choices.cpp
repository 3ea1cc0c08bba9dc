#include "schedule/plan/choices.h"

#include <algorithm>
#include <set>

#include "ir/live_ranges.h"
#include "ir/loops/index_algebra.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/substitute.h"
#include "schedule/plan/cut_region.h"

namespace cxxinductor::schedule {
namespace {

using loops::Buffer;
using loops::BufferId;
using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using sym::Expr;

constexpr size_t most_pieces = 256;

bool stores_all(const loops::Program& program, const Region& region, BufferId result) {
  const loops::Store* found = nullptr;
  for (const Stmt& stmt : region.body)
    if (const auto* store = stmt.as<loops::Store>()) {
      if (found) return false;
      found = store;
    }
  return found && !found->mask.valid() && !found->update &&
         loops::Space(region, program.facts).is_bijection(found->coords, program.buffers[result].sizes);
}

// The strides at which `coords`, in this order, reach the elements that lie at `offset`, which is left at the first.
bool solve_strides(const IdVector<VarId, loops::Var>& vars, const std::vector<Expr>& coords, const sym::Facts& facts,
                   Expr& offset, std::vector<Expr>& strides) {
  std::vector<bool> solved(strides.size(), false);
  for (const loops::Var& var : vars) {
    const Expr symbol = Expr::symbol(var.name);
    const auto dim = only_coordinate(coords, symbol);
    Expr step, rest, weight, others;
    if (!dim || !sym::split_linear(offset, symbol, &step, &rest) ||
        !sym::split_linear(coords[*dim], symbol, &weight, &others))
      return false;
    offset = rest;
    const auto stride = loops::exact_quotient(step, weight);
    if (!stride || (solved[*dim] && !sym::prove_equal(strides[*dim], *stride, facts))) return false;
    if (!solved[*dim]) strides[*dim] = sym::simplify(loops::expand(*stride), facts);
    solved[*dim] = true;
  }
  offset = sym::simplify(offset, facts);
  return true;
}

class Finder {
 public:
  Finder(const loops::Program& program, const Choice& choice, const std::function<bool(BufferId)>& is_operand)
      : program_(program), choice_(choice), is_operand_(is_operand) {}

  std::vector<Piece> pieces_along(VarId var) const {
    std::vector<Piece> pieces;
    const std::vector<Expr> boundaries = find_boundaries(choice_.region, var, facts());
    if (boundaries.size() < 3 || boundaries.size() > most_pieces) return pieces;
    std::set<BufferId> taken;
    for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
      const Expr extent = sym::simplify(loops::expand(boundaries[i + 1] - boundaries[i]), facts());
      Piece piece{boundaries[i], extent, {}, {}, {}};
      match(var, piece);
      if (piece.operand.valid() && !taken.insert(piece.operand).second) piece.operand = {};
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  int64_t bytes_of(const std::vector<Piece>& pieces) const {
    int64_t bytes = 0;
    for (const Piece& piece : pieces) {
      if (!piece.operand.valid()) continue;
      const Buffer& buffer = program_.buffers[piece.operand];
      bytes += typical_bytes(buffer.dtype, buffer.sizes, buffer.strides, facts());
    }
    return bytes;
  }

 private:
  const sym::Facts& facts() const { return program_.facts; }

  // Sets the operand and its place if the interval holds nothing but its elements.
  void match(VarId var, Piece& piece) const {
    const Region cut = cut_region(choice_.region, var, piece.begin, piece.extent, facts());
    if (cut.body.size() != 2) return;
    const auto* load = cut.body[StmtId(0)].as<loops::Load>();
    const auto* store = cut.body[StmtId(1)].as<loops::Store>();
    if (!load || !store || load->mask.valid() || store->value != StmtId(0) || !is_operand_(load->buffer)) return;
    const Buffer &from = program_.buffers[load->buffer], &to = program_.buffers[choice_.result];
    const loops::Space space(cut, facts());
    if (from.dtype != to.dtype || from.device != to.device || !space.is_bijection(load->coords, from.sizes)) return;
    Expr offset = 0;
    for (size_t d = 0; d < store->coords.size(); ++d) offset = offset + store->coords[d] * to.strides[d];
    offset = loops::expand(space.simplify(offset));
    std::vector<Expr> strides = from.strides;
    if (!solve_strides(cut.vars, load->coords, facts(), offset, strides)) return;
    piece.operand = load->buffer;
    piece.strides = std::move(strides);
    piece.offset = offset;
  }

  const loops::Program& program_;
  const Choice& choice_;
  const std::function<bool(BufferId)>& is_operand_;
};

}  // namespace

std::optional<Choice> find_choice(const loops::Program& program, size_t step, BufferId result,
                                  const std::function<bool(BufferId)>& is_operand) {
  const Region& region = std::get<Region>(program.steps[step]);
  const RegionFacts facts = facts_of(region);
  if (program.buffers[result].role == Buffer::Role::Input || loops::walked_var(region).valid() || facts.checks > 0 ||
      std::binary_search(facts.reads.begin(), facts.reads.end(), result) ||
      std::none_of(facts.reads.begin(), facts.reads.end(), is_operand))
    return std::nullopt;
  const bool alone = facts.writes.size() == 1;
  Choice choice{step, result, alone ? region : slice_for_store(program, region, result), alone, {}, {}};
  if (!reduced_vars(choice.region).empty() || !stores_all(program, choice.region, result)) return std::nullopt;
  const Finder finder(program, choice, is_operand);
  for (size_t v = 0; v < choice.region.vars.size(); ++v) {
    std::vector<Piece> pieces = finder.pieces_along(VarId(v));
    if (finder.bytes_of(pieces) <= finder.bytes_of(choice.pieces)) continue;
    choice.var = VarId(v);
    choice.pieces = std::move(pieces);
  }
  if (choice.pieces.empty()) return std::nullopt;
  return choice;
}

std::vector<std::pair<Expr, Expr>> rests_of(const Choice& choice) {
  std::vector<std::pair<Expr, Expr>> rests;
  bool open = false;
  for (const Piece& piece : choice.pieces) {
    if (!piece.operand.valid() && open) rests.back().second = rests.back().second + piece.extent;
    if (!piece.operand.valid() && !open) rests.emplace_back(piece.begin, piece.extent);
    open = !piece.operand.valid();
  }
  return rests;
}

std::optional<size_t> only_coordinate(const std::vector<Expr>& coords, Expr symbol) {
  std::optional<size_t> found;
  for (size_t d = 0; d < coords.size(); ++d) {
    if (!coords[d].depends_on(symbol)) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace cxxinductor::schedule
