// Mutated archives: whatever comes, the answer is a program that is whole, or a UserError or Unsupported. The asan
// preset makes a crash of what would only be luck. CXXINDUCTOR_FUZZ_SEED repeats a run, CXXINDUCTOR_PT2_MUTATIONS sets
// its length; the archive that was tried last lies beside the program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>

#include "fuzz/seed.h"
#include "model/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/readers/archives.h"

namespace cxxinductor::readers {
namespace {

using Json = nlohmann::json;

struct Fixture {
  std::vector<ZipEntry> entries;
  std::vector<Json> parsed;  // of the entries that are JSON, else null
};

std::vector<Fixture> fixtures() {
  std::vector<Fixture> out;
  for (const char* name : {"mlp", "tied", "training", "nested", "sizes"}) {
    Fixture fixture{entries_of(fixture_bytes(std::string(name) + ".pt2")), {}};
    for (const ZipEntry& entry : fixture.entries)
      fixture.parsed.push_back(entry.name.ends_with(".json") ? Json::parse(entry.bytes) : Json());
    out.push_back(std::move(fixture));
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : fixtures_(fixtures()), random_(seed) {}

  std::string next() {
    const Fixture& fixture = fixtures_[below(fixtures_.size())];
    std::vector<ZipEntry> entries = fixture.entries;
    const size_t kind = below(10);
    if (kind < 7) mutate_json(fixture, entries);
    if (kind == 7) mutate_entries(entries);
    std::string zip = zip_of(entries);
    if (kind > 7)
      for (size_t edits = 1 + below(3); edits > 0; --edits) mutate_bytes(zip);
    return zip;
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  // ---- zip ----

  uint64_t odd_number() {
    static constexpr uint64_t numbers[] = {0,   1,    2,      8,      14,         30,         46,
                                           255, 4096, 0x7fff, 0xffff, 0x7fffffff, 0xfffffffe, 0xffffffff};
    return numbers[below(std::size(numbers))];
  }

  // A field of a local header, a directory record or the directory's end; or a byte anywhere; or the length.
  void mutate_bytes(std::string& zip) {
    if (zip.size() < 64) return;
    static const std::string marks[] = {"PK\1\2", "PK\3\4", "PK\5\6"};
    const size_t kind = below(6);
    if (kind == 5) return zip.resize(below(zip.size()));
    size_t at = below(zip.size());
    if (kind < 4) {
      const size_t found = zip.find(marks[std::min<size_t>(kind, 2)], kind == 2 ? 0 : at);
      if (found != zip.npos) at = found + 4 + below(42);
    }
    const uint64_t value = below(2) == 0 ? odd_number() : random_();
    for (size_t i = 0, bytes = size_t{1} << below(3); i < bytes && at + i < zip.size(); ++i)
      zip[at + i] = static_cast<char>(value >> (8 * i));
  }

  void mutate_entries(std::vector<ZipEntry>& entries) {
    ZipEntry &a = entries[below(entries.size())], &b = entries[below(entries.size())];
    switch (below(7)) {
      case 0:
        std::swap(a.bytes, b.bytes);
        break;
      case 1:
        std::swap(a.name, b.name);
        break;
      case 2:
        a.name = b.name;
        break;
      case 3:
        a.bytes.resize(below(a.bytes.size() + 1));
        break;
      case 4:
        entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(below(entries.size())));
        break;
      case 5:
        entries.push_back({"models/other.json", a.bytes});
        break;
      case 6:
        if (!a.bytes.empty()) a.bytes[below(a.bytes.size())] = static_cast<char>(random_());
        break;
    }
  }

  // ---- JSON ----

  // Every value of a tree, in order; the root first.
  static void collect(Json& json, std::vector<Json*>& out) {
    out.push_back(&json);
    if (json.is_structured())
      for (auto& item : json) collect(item, out);
  }

  Json odd_value() {
    static const std::vector<Json> values{nullptr,
                                          true,
                                          false,
                                          0,
                                          1,
                                          -1,
                                          2,
                                          7,
                                          64,
                                          1000000007,
                                          std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min(),
                                          std::numeric_limits<uint64_t>::max(),
                                          0.5,
                                          1e300,
                                          -0.0,
                                          "",
                                          "x",
                                          "Infinity",
                                          "NaN",
                                          "as_int",
                                          "mm",
                                          "getitem",
                                          std::string(300, 'n'),
                                          std::string("\0\n\"\\", 4),
                                          "\u00e4",
                                          "Symbol('s77', positive=True, integer=True)",
                                          "FloorDiv(Symbol('s77'), Integer(0))",
                                          "Max(Symbol('a'), Symbol('b'), Integer(-3))",
                                          "Mul(Integer(9223372036854775807), Symbol('s77'))",
                                          "PowByNatural(Symbol('z'), Integer(16))",
                                          "GreaterThan(Symbol('u0'), Integer(3))",
                                          "torch.ops.aten.mm.default",
                                          "torch.ops.higher_order.invoke_subgraph",
                                          "_operator.mul",
                                          "torch.ops.aten.sym_size.int",
                                          "[1, {}]",
                                          Json::array(),
                                          Json::object(),
                                          Json{{"as_int", -5}},
                                          Json{{"as_none", true}},
                                          Json{{"as_name", "x"}},
                                          Json{{"name", "x"}}};
    return values[below(values.size())];
  }

  void mutate_json(const Fixture& fixture, std::vector<ZipEntry>& entries) {
    size_t i = below(entries.size());
    if (fixture.parsed[i].is_null() || below(3) > 0)  // the program, mostly
      for (size_t k = 0; k < entries.size(); ++k)
        if (entries[k].name == "models/model.json") i = k;
    Json json = fixture.parsed[i];
    for (size_t edits = 1 + below(3); edits > 0; --edits) edit(json);
    entries[i].bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void edit(Json& root) {
    std::vector<Json*> all;
    collect(root, all);
    Json &at = *all[below(all.size())], &other = *all[below(all.size())];
    switch (below(7)) {
      case 0:
        at = odd_value();
        break;
      case 1: {
        Json copy = other;  // one may hold the other
        at = std::move(copy);
        break;
      }
      case 2: {
        Json a = at, b = other;
        at = std::move(b);
        all.clear();
        collect(root, all);
        *all[below(all.size())] = std::move(a);
        break;
      }
      case 3:
        remove_from(at);
        break;
      case 4:
        if (at.is_array() && !at.empty())
          at.insert(at.begin() + static_cast<std::ptrdiff_t>(below(at.size() + 1)), Json(at[below(at.size())]));
        if (at.is_object() && !at.empty()) at[below(2) == 0 ? "name" : "as_tensor"] = Json(*at.begin());
        break;
      case 5:
        change_text_or_number(at);
        break;
      case 6:  // a list of lists of .., sometimes of more levels than may be read
        for (size_t depth = below(8) == 0 ? below(400) : below(4); depth > 0; --depth)
          at = Json::array({std::move(at)});
        break;
    }
  }

  void remove_from(Json& at) {
    if (!at.is_structured() || at.empty()) return;
    at.erase(std::next(at.begin(), static_cast<std::ptrdiff_t>(below(at.size()))));
  }

  void change_text_or_number(Json& at) {
    if (at.is_number_integer()) at = static_cast<int64_t>(at.get<uint64_t>() + below(5) - 2);
    if (!at.is_string()) return;
    std::string text = at.get<std::string>();
    if (text.empty()) return;
    const size_t begin = below(text.size());
    if (below(2) == 0)
      text.erase(begin, 1 + below(8));
    else
      text.insert(begin, text.substr(begin, 1 + below(20)));
    at = text;
  }

  std::vector<Fixture> fixtures_;
  std::mt19937_64 random_;
};

int mutations() {
  const char* given = std::getenv("CXXINDUCTOR_PT2_MUTATIONS");
  return given != nullptr ? std::atoi(given) : 20000;
}

// What holds of every program, besides what model::verify checks before it is returned.
void check_program(const Program& program, const std::string& zip) {
  for (const WeightRef& weight : program.weights) {
    REQUIRE(weight.byte_offset <= zip.size());
    REQUIRE(weight.byte_size <= zip.size() - weight.byte_offset);
    int64_t last = weight.storage_offset;
    bool empty = false;
    for (size_t d = 0; d < weight.sizes.size(); ++d) {
      empty = empty || weight.sizes[d] == 0;
      if (!empty) last += (weight.sizes[d] - 1) * weight.strides[d];
    }
    if (!empty) REQUIRE(static_cast<size_t>((last + 1) * byte_size(weight.dtype)) <= weight.byte_size);
    REQUIRE(program.calls.inputs.at(weight.input) < program.calls.values.size());
  }
  for (const InputSpec& input : program.signature.inputs)
    if (input.kind == InputSpec::Kind::User) REQUIRE(input.index < program.calls.inputs.size());
  for (const OutputSpec& output : program.signature.outputs)
    if (output.kind == OutputSpec::Kind::User) REQUIRE(output.index < program.calls.outputs.size());
  const std::string text = model::print(program.calls);
  REQUIRE(model::print(model::parse(text)) == text);
}

}  // namespace

TEST_CASE("mutated archives give a whole program or an error", "[fuzz]") {
  const uint64_t seed = fuzz::first_seed();
  Mutator mutator(seed);
  const std::string last = "pt2_fuzz_last.pt2";
  int programs = 0, errors = 0, unsupported = 0;
  for (int i = 0; i < mutations(); ++i) {
    const std::string zip = mutator.next();
    std::ofstream(last, std::ios::binary) << zip;
    INFO("seed " << seed << ", mutation " << i);
    try {
      check_program(read(zip), zip);
      ++programs;
    } catch (const UserError& error) {
      CHECK(std::string(error.what()).size() < 1000);  // a place and two values, not the file
      ++errors;
    } catch (const Unsupported&) {
      ++unsupported;
    } catch (const std::exception& error) {
      FAIL("not an error for users: " << error.what());
    }
  }
  WARN("seed " << seed << ": " << programs << " programs, " << errors << " errors, " << unsupported << " unsupported");
  CHECK(programs > 0);
  CHECK(errors > 0);
  CHECK(unsupported > 0);
  std::remove(last.c_str());
}

}  // namespace cxxinductor::readers
