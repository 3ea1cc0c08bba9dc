// A negative case for each invariant of bodies. Golden files (tests/filetests/bodies) show what bodies are lowered to.
#include "kernels/body/verify_body.h"

#include <algorithm>

#include "ir/plan/text.h"
#include "kernels/bodies.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/print_body.h"
#include "kernels/body/slots.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"
#include "unit/ir/plan/samples.h"

using namespace cxxinductor;
using namespace cxxinductor::kernels;
using Kind = Step::Kind;

namespace {

// One group with a checked index, a mask, a store of what does not vary, and a tail.
constexpr const char* gather =
    R"(plan @f for cuda on cuda:0 (@x: f32[64] bytes (256), @i: i64[1003] bytes (8024), @m: bool[1] bytes (1)) {
  ; holds at most 4516 bytes, 4516 at least
  buffer @y: f32[1003] bytes (4012) standalone
  buffer @z: f32[1] bytes (4) standalone
  kernel @k on cuda:0 (f32 read, i64 read, bool read, f32 written, f32 written) symbols [] where 0 <= i0 <= 1002 {
    index_limit (1003) always_index32 bytes_read 0 bytes_written 0
    region @k over i0 < 1003 {
      %0 = load @2[0] at (0) broadcast  ; ()
      %1 = load @1[i0] at (i0) vector  ; (i0)
      check %1 < (64) "an index"  ; (i0)
      %3 = load @0[%1] if %0 else f32(2.0) at (%1) strided  ; (i0)
      store @3[i0] = %3 at (i0) vector  ; (i0)
      %5 = constant f32(1.0)  ; ()
      store @4[0] = %5 at (0) broadcast  ; ()
    }
    mapping pointwise space [i0] vector_width 4 vector_tail
    row_loop [%0, %1, %2, %3, %4, %5, %6]
  }
  allocate @y
  allocate @z
  launch @k(@x, @i, @m, @y, @z) symbols [] grid [1, 1]
  return @y, @z
}
)";

// A sum over rows whose states are in shared memory, and one over each row, which its first thread stores.
constexpr const char* serial =
    R"(plan @f for cuda on cuda:0 (@x: f32[4, 8, 1000] bytes (128000)) {
  ; holds at most 16896 bytes, 16128 at least
  buffer @y: f32[4, 8] bytes (128) standalone
  buffer @s: f32[4, 1000] bytes (16000) standalone
  kernel @sums on cuda:0 (f32 read, f32 written, f32 written) symbols [] {
    index_limit (32000) always_index32 bytes_read 0 bytes_written 0
    region @sums over i0 < 4, w0 < 8, r0 < 1000 {
      %0 = load @0[8000*i0 + r0 + 1000*w0] at (8000*i0 + r0 + 1000*w0) vector memory_space persistent  ; (i0 w0 r0)
      %1 = reduce<sum>(%0) over r0 memory_space row  ; (i0 w0)
      store @1[8*i0 + w0] = %1 at (8*i0 + w0) broadcast  ; (i0 w0)
      %3 = reduce<sum>(%0) over w0 memory_space shared  ; (i0 r0)
      store @2[1000*i0 + r0] = %3 at (1000*i0 + r0) vector  ; (i0 r0)
    }
    mapping serial_rows space [i0] row [r0] vector_width 4 serial w0 threads_per_row 512
    row_loop [%0, %1, %3]
    per_row [%2]
    epilogue [%4]
  }
  allocate @y
  allocate @s
  launch @sums(@x, @y, @s) symbols [] grid [4, 1]
  return @y, @s
}
)";

struct Sample {
  plan::Plan plan;
  Body body;
  const plan::Kernel& kernel() const { return plan.kernels[plan::KernelId(0)]; }
  std::vector<Step>& steps() { return body.steps; }
  // The n-th step of the kind and statement.
  size_t at(Kind kind, size_t stmt, size_t skip = 0) {
    for (size_t s = 0; s < body.steps.size(); ++s)
      if (body.steps[s].kind == kind && (!body.steps[s].stmt.valid() || body.steps[s].stmt.index() == stmt) && skip-- == 0) return s;
    FAIL("no step " << name_of(kind) << " %" << stmt << " in\n" << print_body(kernel(), body));
    return 0;
  }
  Step& step(Kind kind, size_t stmt) { return body.steps[at(kind, stmt)]; }
  void erase(Kind kind, size_t stmt) { body.steps.erase(body.steps.begin() + static_cast<std::ptrdiff_t>(at(kind, stmt))); }
  void insert(size_t position, const Step& step) { body.steps.insert(body.steps.begin() + static_cast<std::ptrdiff_t>(position), step); }
};

Sample sample(const char* text, size_t segment) {
  Sample made{plan::parse(text), {}};
  made.body = lower_segment(made.kernel(), segment);
  return made;
}

template <class Edit>
void breaks(const char* expected, const char* text, size_t segment, Edit edit) {
  Sample edited = sample(text, segment);
  INFO(print_body(edited.kernel(), edited.body));
  CHECK(verify_body(edited.kernel(), edited.body).empty());
  edit(edited);
  std::string all;
  for (const std::string& message : verify_body(edited.kernel(), edited.body)) all += message + "\n";
  INFO("expected " << expected);
  check_contains(all, expected);
}

}  // namespace

TEST_CASE("all bodies of the samples are valid", "[kernels][body]") {
  size_t found = 0;
  for (const char* text : {every_plan_kind, matmul_plan, gather, serial})
    for (const plan::Plan plan = plan::parse(text); const plan::Kernel& kernel : plan.kernels)
      for (const auto& [name, body] : lower_bodies(kernel)) {
        INFO(name << ": " << print_body(kernel, body));
        CHECK(verify_body(kernel, body).empty());
        ++found;
      }
  CHECK(found > 8);
}

TEST_CASE("B1: lanes have their loop", "[kernels][body]") {
  breaks("B1: k: lanes out of turn", gather, 0, [](Sample& s) { s.insert(s.at(Kind::BeginLanes, 0), {.kind = Kind::BeginLanes}); });
  breaks("B1: k: a lane loop does not end", gather, 0, [](Sample& s) { s.erase(Kind::EndLanes, 0); });
  breaks("B1: k: load %0 stands in a lane loop", gather, 0, [](Sample& s) { std::swap(s.step(Kind::Load, 0), s.step(Kind::Load, 3)); });
  breaks("B1: softmax: bring %0 stands outside of a lane loop", every_plan_kind, 1,
         [](Sample& s) { std::swap(s.steps()[s.at(Kind::BeginLanes, 0)], s.steps()[s.at(Kind::Bring, 0)]); });
}

TEST_CASE("B2: what a step reads is there", "[kernels][body]") {
  breaks("B2: k: %4 reads %3, which is not there", gather, 0, [](Sample& s) { s.erase(Kind::Load, 3); });
  breaks("B2: k: %3 reads %1, which is not there", gather, 0, [](Sample& s) { std::swap(s.step(Kind::Load, 1), s.step(Kind::Load, 3)); });
  breaks("B2: k: %3 reads %0, which is not there", gather, 0, [](Sample& s) { s.erase(Kind::Load, 0); });
  breaks("B2: k: load %1: nothing is there as group", gather, 0, [](Sample& s) { s.erase(Kind::LoadGroup, 1); });
  breaks("B2: k: %3 is not staged", gather, 0, [](Sample& s) { s.step(Kind::Load, 3).where = Where::Tile; });
  breaks("B2: softmax: bring %0: nothing is there as lanes", every_plan_kind, 1, [](Sample& s) { s.step(Kind::Bring, 0).where = Where::Lanes; });
  // A value of a lane ends with its loop.
  breaks("B2: softmax: %7 reads %6, which is not there", every_plan_kind, 2, [](Sample& s) { s.erase(Kind::Bring, 6); });
  breaks("B2: softmax: %6 reads %5, which is not there", every_plan_kind, 2,
         [](Sample& s) { std::erase_if(s.body.slot.in, [](const Place& place) { return place.value.index() == 5; }); });
}

TEST_CASE("B3: each statement is executed once", "[kernels][body]") {
  breaks("B3: k: %6 is executed 0 times", gather, 0, [](Sample& s) { s.erase(Kind::Store, 6); });
  breaks("B3: k: %5 is executed 2 times", gather, 0, [](Sample& s) { s.insert(0, s.step(Kind::Compute, 5)); });
  breaks("B3: k: %5 is executed 1 times", gather, 0, [](Sample& s) { s.body.slot.in.push_back({plan::StmtId(5), Where::Value}); });
  breaks("B3: k: %6 is executed and does not belong", gather, 0, [](Sample& s) { std::erase(s.body.slot.stmts, plan::StmtId(6)); });
}

TEST_CASE("B4: effects and accesses have their guards", "[kernels][body]") {
  breaks("store %6 has another condition than it needs: once", gather, 0, [](Sample& s) { s.step(Kind::Store, 6).guard.once.clear(); });
  breaks("load %3 has another condition than it needs: lanes", gather, 0, [](Sample& s) { s.step(Kind::Load, 3).guard.lanes = false; });
  breaks("store_group %4 has another condition than it needs: lanes", gather, 0, [](Sample& s) { s.step(Kind::StoreGroup, 4).guard.lanes = false; });
  breaks("check %2 has another condition than it needs: lanes", gather, 0, [](Sample& s) { s.step(Kind::Check, 2).guard.lanes = false; });
  breaks("load %3 has another condition than it needs: mask", gather, 0, [](Sample& s) { s.step(Kind::Load, 3).guard.mask = {}; });
  breaks("load %3 has another condition than it needs: range", gather, 0, [](Sample& s) { s.step(Kind::Load, 3).guard.in_range.clear(); });
  breaks("%3 relies on %5, which is not a check", gather, 0, [](Sample& s) { s.step(Kind::Load, 3).guard.in_range = {plan::StmtId(5)}; });
  breaks("store %2 has another condition than it needs: effects", serial, 1, [](Sample& s) { s.step(Kind::Store, 2).guard.effects = false; });
  breaks("compute %5 has another condition than it needs: mask", gather, 0, [](Sample& s) { s.step(Kind::Compute, 5).guard.mask = plan::StmtId(0); });
  breaks("update_group %1 has another condition than it needs: once", serial, 0, [](Sample& s) { s.step(Kind::UpdateGroup, 1).guard.once = {plan::VarId(2)}; });
}

TEST_CASE("B5: what lanes fill is reserved, filled and used", "[kernels][body]") {
  breaks("B5: k: fill %4: no room was reserved", gather, 0, [](Sample& s) { s.erase(Kind::Reserve, 4); });
  breaks("B5: k: store_group %4: no lane filled it", gather, 0, [](Sample& s) { s.erase(Kind::Fill, 4); });
  breaks("B5: k: %4 is filled and not used", gather, 0, [](Sample& s) { s.erase(Kind::StoreGroup, 4); });
  breaks("B5: k: load_group %1 stands in a lane loop", gather, 0, [](Sample& s) { s.insert(s.at(Kind::Load, 1), s.step(Kind::LoadGroup, 1)); });
  breaks("B5: softmax: divide %6: no lane filled it", every_plan_kind, 2, [](Sample& s) { s.erase(Kind::Fill, 6); });
  breaks("B5: softmax: update_group %5: no lane filled it", every_plan_kind, 1, [](Sample& s) { s.erase(Kind::Fill, 5); });
}

TEST_CASE("B6: loads ahead wait for nothing, and values are kept", "[kernels][body]") {
  breaks("B6: softmax: %4 is not kept as persistent", every_plan_kind, 1, [](Sample& s) { s.erase(Kind::Keep, 4); });
  breaks("B6: k: 1 loads ahead, the slot has 0", gather, 0, [](Sample& s) { s.body.ahead.push_back(s.step(Kind::LoadGroup, 1)); });
  breaks("B6: k: %3 is not a load ahead of the slot", gather, 0, [](Sample& s) { s.body.ahead.push_back(s.step(Kind::Load, 3)); });
  breaks("B6: k: the load %3 waits for data", gather, 0, [](Sample& s) { s.body.ahead.push_back(s.step(Kind::Load, 3)); });
}

TEST_CASE("B7: shared states are brought and put back", "[kernels][body]") {
  breaks("B7: sums: the states of %3 are not brought", serial, 0, [](Sample& s) { s.erase(Kind::LoadStates, 3); });
  breaks("B7: sums: the states of %3 are not put back", serial, 0, [](Sample& s) { s.erase(Kind::StoreStates, 3); });
  breaks("B7: sums: the states of %3 are not brought", serial, 2, [](Sample& s) { s.erase(Kind::LoadStates, 3); });
}

TEST_CASE("vectors have no loop over lanes", "[kernels][body]") {
  Sample edited = sample(gather, 0);
  edited.body.slot.lanes = LaneForm::Vector;
  std::string all;
  for (const std::string& message : verify_body(edited.kernel(), edited.body)) all += message + "\n";
  check_contains(all, "B1: k: lanes out of turn");
}
