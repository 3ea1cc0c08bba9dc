#include "fuzz/file_mutators.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

#include "unit/package/packages.h"

namespace cxxinductor::fuzz {

using Json = nlohmann::json;

namespace {

void overwrite(std::string& bytes, size_t at, uint64_t value, size_t count) {
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

uint64_t odd_number(Random& random) {
  static constexpr std::array<uint64_t, 18> numbers{
      0,           1, 2, 8, 14, 30, 46, 255, 4096, 0x7fff, 0xffff, 0x7fffffff, 0xfffffffe, 0xffffffff, uint64_t{1} << 32, uint64_t{1} << 62, uint64_t{1} << 63,
      ~uint64_t{0}};
  return random.one_in(3) ? random.bits() : random.pick(numbers);
}

// More directory records than there are entries, which all name the same bytes.
void repeat_records(std::string& zip, Random& random) {
  const size_t directory = zip.find("PK\1\2"), end = zip.rfind("PK\5\6");
  if (directory == zip.npos || end == zip.npos || directory >= end) return;
  const size_t next = std::min(zip.find("PK\1\2", directory + 4), end);
  const std::string record = zip.substr(directory, next - directory);
  std::string copies;
  for (size_t count = 1 + random.below(2000); count > 0; --count) copies += record;
  zip.insert(end, copies);
  const size_t moved = end + copies.size();
  const uint64_t records = (moved - directory) / std::max<size_t>(record.size(), 1);
  overwrite(zip, moved + 8, records, 2);
  overwrite(zip, moved + 10, records, 2);
  overwrite(zip, moved + 12, moved - directory, 4);
}

// Every value of a tree, in order; the root first.
void collect(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  if (json.is_structured())
    for (auto& item : json) collect(item, out);
}

const std::vector<Json>& odd_values() {
  // clang-format off
  static const std::vector<Json> values{
      nullptr, true, false, 0, 1, -1, 2, 3, 7, 64, 128, 4096, 1000000007, 0.5, 1e300, -0.0,
      std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max(),
      "", "x", "Infinity", "NaN", "as_int", "mm", "getitem", "weight", "user", "literal", "mutation", "i64", "../weights", "cuda:0", "x86-64-v9",
      std::string(300, 'n'), std::string(100000, '('), std::string("\0\n\"\\", 4), "\u00e4",
      "Symbol('s77', positive=True, integer=True)", "FloorDiv(Symbol('s77'), Integer(0))", "Mod(Symbol('s77'), Integer(0))",
      "Max(Symbol('a'), Symbol('b'), Integer(-3))", "Mul(Integer(9223372036854775807), Symbol('s77'))",
      "Pow(Pow(Symbol('s77'), Integer(99)), Integer(99))", "PowByNatural(Symbol('z'), Integer(16))", "GreaterThan(Symbol('u0'), Integer(3))",
      "torch.ops.aten.mm.default", "torch.ops.aten.from_file.default", "torch.ops.aten.set_.source_Tensor", "torch.ops.mylib.op.default",
      "torch.ops.higher_order.invoke_subgraph", "torch.ops.higher_order.cond", "_operator.mul", "torch.ops.aten.sym_size.int", "[1, {}]",
      Json::array(), Json::object(), Json::array({1, 2}), Json{{"as_int", -5}}, Json{{"as_none", true}}, Json{{"as_name", "x"}}, Json{{"name", "x"}}};
  // clang-format on
  return values;
}

void change_text_or_number(Json& at, Random& random) {
  if (at.is_number_integer()) at = static_cast<int64_t>(at.get<uint64_t>() + random.below(5) - 2);
  if (!at.is_string()) return;
  std::string text = at.get<std::string>();
  if (text.empty()) return;
  const size_t begin = random.below(text.size());
  if (random.one_in(2))
    text.erase(begin, 1 + random.below(8));
  else
    text.insert(begin, text.substr(begin, 1 + random.below(20)));
  at = text;
}

void add_to(Json& at, Random& random) {
  if (at.is_array() && !at.empty()) {
    const Json copy = at[random.below(at.size())];
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(random.below(at.size() + 1)), copy);
  }
  if (at.is_object() && !at.empty()) {
    static constexpr std::array<const char*, 4> keys{"name", "as_tensor", "as_tensors", "index"};
    const Json copy = *at.begin();
    at[random.pick(keys)] = copy;
  }
}

void edit(Json& root, Random& random) {
  std::vector<Json*> all;
  collect(root, all);
  Json &at = *random.pick(all), &other = *random.pick(all);
  switch (random.below(7)) {
    case 0:
      at = random.pick(odd_values());
      break;
    case 1: {
      Json copy = other;  // one may hold the other
      at = std::move(copy);
      break;
    }
    case 2: {  // names swapped, too: a node that needs a later one
      Json a = at, b = other;
      at = std::move(b);
      all.clear();
      collect(root, all);
      *random.pick(all) = std::move(a);
      break;
    }
    case 3:
      if (at.is_structured() && !at.empty()) at.erase(std::next(at.begin(), static_cast<std::ptrdiff_t>(random.below(at.size()))));
      break;
    case 4:
      add_to(at, random);
      break;
    case 5:
      change_text_or_number(at, random);
      break;
    case 6:  // a list of lists of .., sometimes of more levels than may be read
      for (size_t depth = random.one_in(8) ? random.below(400) : random.below(4); depth > 0; --depth) at = Json::array({std::move(at)});
      break;
  }
}

std::pair<size_t, size_t> word_in(const std::string& text, Random& random) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '@'; };
  size_t begin = random.below(text.size());
  while (begin > 0 && is_part(text[begin - 1])) --begin;
  size_t end = begin;
  while (end < text.size() && is_part(text[end])) ++end;
  return {begin, std::max(end, begin + 1)};
}

std::pair<size_t, size_t> line_in(const std::string& text, Random& random) {
  size_t begin = text.rfind('\n', random.below(text.size()));
  begin = begin == std::string::npos ? 0 : begin + 1;
  const size_t end = text.find('\n', begin);
  return {begin, end == std::string::npos ? text.size() : end + 1};
}

}  // namespace

void mutate_zip(std::string& zip, Random& random) {
  if (zip.size() < 64) return;
  static const std::array<std::string, 3> marks{"PK\1\2", "PK\3\4", "PK\5\6"};
  const size_t kind = random.below(14);
  if (kind == 12) return zip.resize(random.below(zip.size()));
  if (kind == 13) return repeat_records(zip, random);
  size_t at = random.below(zip.size());
  if (kind < 9) {
    const size_t mark = kind % marks.size();
    const size_t found = zip.find(marks[mark], mark == 2 ? 0 : at);
    if (found != zip.npos) at = found + 4 + random.below(42);
  }
  overwrite(zip, at, odd_number(random), size_t{1} << random.below(4));
}

void mutate_entries(std::vector<readers::ZipEntry>& entries, Random& random) {
  if (entries.empty()) return;
  readers::ZipEntry &a = entries[random.below(entries.size())], &b = entries[random.below(entries.size())];
  switch (random.below(8)) {
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
      a.bytes.resize(random.below(a.bytes.size() + 1));
      break;
    case 4:
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(random.below(entries.size())));
      break;
    case 5:
      entries.push_back({random.one_in(2) ? "models/other.json" : "../" + a.name, std::string(a.bytes)});
      break;
    case 6:
      if (!a.bytes.empty()) a.bytes[random.below(a.bytes.size())] = static_cast<char>(random.bits());
      break;
    case 7:
      a.name.insert(random.below(a.name.size() + 1), random.one_in(8) ? std::string(2000, 'n') : std::string(1, static_cast<char>(random.bits())));
      break;
  }
}

void mutate_json(Json& root, Random& random) {
  for (size_t edits = 1 + random.below(3); edits > 0; --edits) edit(root, random);
}

void mutate_json_text(std::string& text, Random& random) {
  const size_t at = random.below(text.size() + 1);
  switch (random.below(5)) {
    case 0:
      text.insert(at, std::string(random.below(5000), random.one_in(2) ? '[' : '{'));
      break;
    case 1:
      text.insert(at, "\"" + std::string(random.below(300), '\\') + "u" + std::string(random.below(5), 'd'));
      break;
    case 2:
      text.resize(at);
      break;
    case 3:
      text.insert(at, random.one_in(2) ? "1e99999" : std::string(400, '9'));
      break;
    case 4:
      if (!text.empty()) text[random.below(text.size())] = static_cast<char>(random.bits());
      break;
  }
}

void mutate_text(std::string& text, const std::string& other, Random& random) {
  static const std::vector<std::string> pieces{"0",
                                               "-1",
                                               "1",
                                               "2",
                                               "64",
                                               "2147483648",
                                               "9223372036854775807",
                                               "99999999999999999999",
                                               "1e400",
                                               "nan",
                                               "-inf",
                                               "s0",
                                               "s0*s0",
                                               "floordiv(s0, 0)",
                                               "mod(s0, s1)",
                                               "(",
                                               ")",
                                               "[",
                                               "]",
                                               "<",
                                               ">",
                                               "{",
                                               "}",
                                               ",",
                                               ":",
                                               "%0",
                                               "%x",
                                               "@0",
                                               "$0",
                                               "$7",
                                               "\"",
                                               "\\",
                                               "f32",
                                               "bf16",
                                               "bool",
                                               "c64",
                                               "expr(s0)",
                                               "handle(0)",
                                               "donated",
                                               "frozen",
                                               "storage 1",
                                               "offset(4)",
                                               "strides [0]",
                                               "list",
                                               "final",
                                               "cuda:9",
                                               "\n",
                                               " ",
                                               "\x80",
                                               std::string(3000, '('),
                                               std::string(3000, '[')};
  for (size_t edits = 1 + random.below(3); edits > 0 && !text.empty(); --edits) {
    const auto [begin, end] = random.one_in(3) ? line_in(text, random) : word_in(text, random);
    const std::string piece = text.substr(begin, end - begin);
    switch (random.below(6)) {
      case 0:
        text.erase(begin, end - begin);
        break;
      case 1:
        text.replace(begin, end - begin, random.pick(pieces));
        break;
      case 2:
        text.insert(begin, random.pick(pieces));
        break;
      case 3:
        text.insert(begin, piece);
        break;
      case 4:
        if (!other.empty()) {
          const auto [from, to] = word_in(other, random);
          text.replace(begin, end - begin, other.substr(from, to - from));
        }
        break;
      case 5:
        text.resize(begin);
        break;
    }
  }
}

void mutate_package(std::string& package, Random& random) {
  static constexpr std::array<uint64_t, 8> odd{128, 4095, 4096, 8192, 0x7fffffff, 0xffffffff, ~uint64_t{0} - 4095, 7};
  const size_t kind = random.below(8);
  if (package.empty() || kind == 7) return package.resize(random.below(package.size() + 1));
  const size_t at = kind == 0   ? random.below(package_file::header_size)
                    : kind == 1 ? random.below(package.size())
                                : package_file::entry_at(random.below(5)) + 8 * random.below(16);
  overwrite(package, at, random.one_in(2) ? random.pick(odd) : odd_number(random), size_t{1} << random.below(4));
}

}  // namespace cxxinductor::fuzz
