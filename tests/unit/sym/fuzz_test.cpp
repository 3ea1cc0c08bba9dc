// Random expressions: rules preserve values, forms are canonical, text reads back, programs compute what evaluate does.
#include <map>
#include <random>

#include "fuzz/seed.h"
#include "support/error.h"
#include "sym/program.h"
#include "sym/simplify.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::sym;

namespace {

constexpr int cases = 2000;
const std::vector<std::string> names{"a", "b", "c", "s0"};

using Values = std::map<std::string, int64_t, std::less<>>;

class Generator {
 public:
  explicit Generator(uint64_t stream) : random_(fuzz::first_seed() * 1000003 + stream) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Expr expression(int depth) {
    if (depth == 0) return number(0, 3) == 0 ? Expr(number(-6, 12)) : Expr::symbol(names[static_cast<size_t>(number(0, 3))]);
    const Expr x = expression(depth - 1);
    switch (number(0, 9)) {
      case 0:
      case 1:
        return x + expression(depth - 1);
      case 2:
        return x - expression(depth - 1);
      case 3:
        return x * expression(static_cast<int>(number(0, 1)));
      case 4:
        return min(x, expression(depth - 1));
      case 5:
        return max(x, expression(depth - 1));
      case 6:
      case 7:
        return floor_div(x, divisor());
      default:
        return mod(x, divisor());
    }
  }

  // Assumptions about every symbol, and an assignment that they allow. Symbols "b" and "s0" are positive: they divide.
  void choose(Assumptions* assumptions, Values* values) {
    for (const std::string& name : names) {
      const bool positive = name == "b" || name == "s0";
      const int64_t divisor = number(0, 2) == 0 ? number(2, 8) : 1;
      const int64_t value = divisor * (positive ? number(1, 12) : number(-6, 20));
      values->insert_or_assign(name, value);
      if (divisor > 1) assumptions->set_divisor(name, divisor);
      const int64_t low = number(0, 1) != 0 ? value : value - number(0, 30);
      const int64_t high = number(0, 3) == 0 ? std::numeric_limits<int64_t>::max() : value + number(0, 30);
      assumptions->set_range(name, {positive ? std::max<int64_t>(low, 1) : low, high});
    }
  }

 private:
  Expr divisor() {
    switch (number(0, 5)) {
      case 0:
        return Expr::symbol("b");
      case 1:
        return Expr::symbol("s0") * number(1, 3);
      case 2:
        return -number(1, 6);
      default:
        return Expr(number(1, 16));
    }
  }

  std::mt19937_64 random_;
};

int64_t value_under(Expr e, const Values& values) {
  return evaluate(e, [&](std::string_view name) { return values.find(name)->second; });
}

}  // namespace

TEST_CASE("simplify preserves the value, is idempotent and agrees with bounds and divisors") {
  for (int i = 0; i < cases; ++i) {
    Generator generator(static_cast<uint64_t>(i));
    Assumptions assumptions;
    Values values;
    generator.choose(&assumptions, &values);
    const Expr e = generator.expression(static_cast<int>(generator.number(1, 5)));
    const Expr simple = simplify(e, assumptions);
    const int64_t value = value_under(e, values);
    INFO("case " << i << ": " << to_string(e) << "  ->  " << to_string(simple));
    for (const std::string& name : names) {
      const Interval range = assumptions.range(name);
      UNSCOPED_INFO(name << " = " << values[name] << " in [" << range.low << ", " << range.high << "], divisor " << assumptions.divisor(name));
    }
    REQUIRE(value_under(simple, values) == value);
    REQUIRE(to_string(simplify(simple, assumptions)) == to_string(simple));
    for (const Expr form : {e, simple}) {
      const Interval range = bounds(form, assumptions);
      REQUIRE(range.low <= value);
      REQUIRE(value <= range.high);
      const int64_t divisor = known_divisor(form, assumptions);
      REQUIRE((divisor == 0 ? value == 0 : value % divisor == 0));
    }
    const Expr other = generator.expression(3);
    const int64_t other_value = value_under(other, values);
    if (const auto less = prove_less(e, other, assumptions)) REQUIRE(*less == (value < other_value));
    if (prove_equal(e, other, assumptions)) REQUIRE(value == other_value);
  }
}

TEST_CASE("construction preserves the value") {
  for (int i = 0; i < cases; ++i) {
    Generator generator(static_cast<uint64_t>(i) + 1'000'000);
    Assumptions assumptions;
    Values values;
    generator.choose(&assumptions, &values);
    const Expr x = generator.expression(3), y = generator.expression(3);
    const int64_t u = value_under(x, values), v = value_under(y, values);
    INFO("case " << i << ": " << to_string(x) << " and " << to_string(y));
    REQUIRE(value_under(x + y, values) == u + v);
    REQUIRE(value_under(x * y, values) == u * v);
    REQUIRE(value_under(min(x, y), values) == std::min(u, v));
    for (const Expr d : {Expr::symbol("b"), Expr(generator.number(1, 20)), Expr(-generator.number(1, 20)), 6 * Expr::symbol("s0")}) {
      const int64_t w = value_under(d, values);
      const int64_t quotient = u >= 0 ? (w > 0 ? u / w : -((u - w - 1) / -w)) : (w > 0 ? -((-u + w - 1) / w) : -u / -w);
      INFO("divided by " << to_string(d) << ": " << to_string(floor_div(x, d)));
      REQUIRE(value_under(floor_div(x, d), values) == quotient);
      REQUIRE(value_under(mod(x, d), values) == u - quotient * w);
    }
  }
}

TEST_CASE("text reads back, also when the operands came in another order") {
  for (int i = 0; i < cases; ++i) {
    Generator generator(static_cast<uint64_t>(i) + 2'000'000);
    const Expr x = generator.expression(3), y = generator.expression(2);
    INFO("case " << i << ": " << to_string(x) << " and " << to_string(y));
    REQUIRE(parse(to_string(x)) == x);
    REQUIRE(to_string(x + y) == to_string(y + x));
    REQUIRE(to_string(x * y) == to_string(y * x));
    REQUIRE(to_string(max(x, y)) == to_string(max(y, x)));
  }
}

TEST_CASE("a program computes what evaluate does") {
  for (int i = 0; i < cases; ++i) {
    Generator generator(static_cast<uint64_t>(i) + 3'000'000);
    Assumptions assumptions;
    Values values;
    generator.choose(&assumptions, &values);
    Program program(names);
    std::vector<std::pair<uint32_t, Expr>> slots;
    for (int k = 0; k < 4; ++k) {
      const Expr e = generator.expression(4);
      slots.emplace_back(program.add(e), e);
    }
    std::vector<int64_t> workspace(program.workspace_size());
    for (size_t n = 0; n < names.size(); ++n) workspace[n] = values[names[n]];
    program.run(workspace);
    for (const auto& [slot, e] : slots) {
      INFO("case " << i << ": " << to_string(e));
      REQUIRE(workspace[slot] == value_under(e, values));
    }
  }
}

TEST_CASE("hostile text never crashes the parsers") {
  const std::string alphabet = "ab0123 ()*+-,;%.'=minmaxfloordivmodSymbol(Integer(Add(";
  for (int i = 0; i < cases; ++i) {
    Generator generator(static_cast<uint64_t>(i) + 4'000'000);
    std::string text = to_string(generator.expression(3));
    for (int64_t edits = generator.number(1, 4); edits > 0 && !text.empty(); --edits) {
      const auto at = static_cast<size_t>(generator.number(0, static_cast<int64_t>(text.size()) - 1));
      const char letter = alphabet[static_cast<size_t>(generator.number(0, static_cast<int64_t>(alphabet.size()) - 1))];
      if (generator.number(0, 1) != 0)
        text[at] = letter;
      else
        text.erase(at, static_cast<size_t>(generator.number(1, 3)));
    }
    for (const auto& read : {parse, parse_srepr}) {
      try {
        read(text);
      } catch (const UserError&) {
      } catch (const Unsupported&) {
      }
    }
  }
}

TEST_CASE("a program names what it lacks and refuses bad values") {
  Program program({"a", "b"});
  REQUIRE_THROWS_AS(program.add(Expr::symbol("c")), UserError);
  const uint32_t slot = program.add(floor_div(Expr::symbol("a"), Expr::symbol("b")));
  REQUIRE(slot == program.add(floor_div(Expr::symbol("a"), Expr::symbol("b"))));
  std::vector<int64_t> workspace(program.workspace_size());
  workspace[0] = 5;
  REQUIRE_THROWS_AS(program.run(workspace), UserError);
}

TEST_CASE("a program computes each expression when the last of its symbols is known", "[sym]") {
  Program program({"a", "u", "v"}, {0, 1, 2});
  const Expr a = Expr::symbol("a"), u = Expr::symbol("u"), v = Expr::symbol("v");
  const uint32_t early = program.add(a * 2 + 1), middle = program.add(a * 2 + u), late = program.add(a * 2 + u * v);
  CHECK(program.time_of(early) == 0);
  CHECK(program.time_of(middle) == 1);
  CHECK(program.time_of(late) == 2);
  std::vector<int64_t> workspace(program.workspace_size(), -1);
  workspace[0] = 5;
  program.run(workspace, 0);
  CHECK(workspace[early] == 11);
  workspace[1] = 7;
  program.run(workspace, 1);
  CHECK(workspace[middle] == 17);
  CHECK(workspace[late] == -1);
  workspace[2] = 3;
  program.run(workspace, 2);
  CHECK(workspace[late] == 31);
}
