// Exactness of sums, by schedule: of each way in which a target adds up, the root mean square over 32 samples and more of
// |result - exact| / sum |terms| is at most twice that of ATen's cascade of partial sums, plus half an ulp. Squared deviations are
// compared with those of one chain of f32 updates.
// The terms are those on which a long chain of additions fails: a large mean, alternating signs, nearly equal ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <variant>

#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

// ---- Terms ------------------------------------------------------------------------------------------------------

struct Terms {
  const char* name;
  double (*term)(int64_t i, double noise);  // noise: uniform in [-1, 1)
};
constexpr Terms kTerms[] = {
    {"a large mean", [](int64_t, double noise) { return 1e3 + noise; }},
    {"alternating signs", [](int64_t i, double noise) { return (i % 2 ? -1.0 : 1.0) * (1e3 + noise); }},
    {"nearly equal terms", [](int64_t, double noise) { return 0.1 * (1 + 1e-6 * noise); }},
    {"one sign, any size", [](int64_t, double noise) { return noise * noise * noise * noise; }},
};

class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int64_t>(state_) >> 11) * 0x1p-52;
  }

 private:
  uint64_t state_;
};

// ---- Schedules --------------------------------------------------------------------------------------------------

// `length` terms for each of `sums` results, an f32 input of two dimensions: a row each, or a column each.
struct Schedule {
  const char* name;
  const char* text;
  int64_t sums, length;
  bool columns = false;
  bool fuse = false;     // the way from regions, which splits reductions and makes rows serial
  bool moments = false;  // mean and squared deviations instead of a sum
  // What the plan must hold, so that the schedule is the one that the name says.
  bool (*shape)(const plan::Mapping&) = plan::is_rows;
  size_t kernels = 1;
};

constexpr const char* kRows = R"(program @p on DEVICE (@x: f32[s0, s1]) where 1 <= s0 <= 100000, 1 <= s1 <= 20000000 {
  output @s: f32[s0]
  region @n over i < s0, j < s1 {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over j
    store @s[i] = %1
  }
  return @s
})";
constexpr const char* kColumns = R"(program @p on DEVICE (@x: f32[s1, s0]) where 1 <= s0 <= 100000, 1 <= s1 <= 20000000 {
  output @s: f32[s0]
  region @n over i < s1, j < s0 {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over i
    store @s[j] = %1
  }
  return @s
})";
// Two sums in one kernel, and what they are used for in a second row loop.
constexpr const char* kSiblings = R"(program @p on DEVICE (@x: f32[s0, s1]) where 1 <= s0 <= 100000, 1 <= s1 <= 20000000 {
  output @s: f32[s0]
  output @y: f32[s0, s1]
  region @n over i < s0, j < s1 {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over j
    %2 = mul(%0, %0)
    %3 = reduce<sum>(%2) over j
    %4 = mul(%0, %3)
    %5 = sub(%4, %1)
    store @s[i] = %1
    store @y[i, j] = %5
  }
  return @s, @y
})";
constexpr const char* kOneRow = R"(program @p on DEVICE (@x: f32[1, LENGTH]) {
  output @s: f32[1]
  region @n over j < LENGTH {
    %0 = load @x[0, j]
    %1 = reduce<sum>(%0) over j
    store @s[0] = %1
  }
  return @s
})";
constexpr const char* kFewColumns = R"(program @p on DEVICE (@x: f32[LENGTH, SUMS]) {
  output @s: f32[SUMS]
  region @n over i < LENGTH, j < SUMS {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over i
    store @s[j] = %1
  }
  return @s
})";
constexpr const char* kKnownRows = R"(program @p on DEVICE (@x: f32[SUMS, LENGTH]) {
  output @s: f32[SUMS]
  output @y: f32[SUMS, LENGTH]
  region @n over i < SUMS, j < LENGTH {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over j
    %2 = sub(%0, %1)
    store @s[i] = %1
    store @y[i, j] = %2
  }
  return @s, @y
})";
// Sums across rows beside what is computed along them.
constexpr const char* kSerialRows = R"(program @p on DEVICE (@x: f32[LENGTH, SUMS]) {
  output @s: f32[SUMS]
  output @y: f32[LENGTH, SUMS]
  region @rows over i < LENGTH, j < SUMS {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over j
    %2 = mul(%0, %1)
    store @y[i, j] = %2
  }
  region @columns over i < LENGTH, j < SUMS {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over i
    store @s[j] = %1
  }
  return @s, @y
})";
constexpr const char* kRowMoments = R"(program @p on DEVICE (@x: f32[s0, s1]) where 1 <= s0 <= 100000, 1 <= s1 <= 20000000 {
  output @s: f32[s0]
  output @v: f32[s0]
  region @n over i < s0, j < s1 {
    %0 = load @x[i, j]
    %1 = reduce<welford>(%0) over j
    %2 = project<1>(%1)
    store @s[i] = %1
    store @v[i] = %2
  }
  return @s, @v
})";
constexpr const char* kColumnMoments = R"(program @p on DEVICE (@x: f32[s1, s0]) where 1 <= s0 <= 100000, 1 <= s1 <= 20000000 {
  output @s: f32[s0]
  output @v: f32[s0]
  region @n over i < s1, j < s0 {
    %0 = load @x[i, j]
    %1 = reduce<welford>(%0) over i
    %2 = project<1>(%1)
    store @s[j] = %1
    store @v[j] = %2
  }
  return @s, @v
})";
constexpr const char* kFewRowMoments = R"(program @p on DEVICE (@x: f32[SUMS, LENGTH]) {
  output @s: f32[SUMS]
  output @v: f32[SUMS]
  region @n over i < SUMS, j < LENGTH {
    %0 = load @x[i, j]
    %1 = reduce<welford>(%0) over j
    %2 = project<1>(%1)
    store @s[i] = %1
    store @v[i] = %2
  }
  return @s, @v
})";

constexpr Schedule kGpuSchedules[] = {
    {.name = "rows", .text = kRows, .sums = 32, .length = 20000},
    {.name = "one row", .text = kRows, .sums = 1, .length = 100000},
    {.name = "rows, two sums", .text = kSiblings, .sums = 32, .length = 16000},
    {.name = "rows in registers", .text = kKnownRows, .sums = 32, .length = 8192},
    {.name = "columns", .text = kColumns, .sums = 32, .length = 20000, .columns = true, .shape = plan::is_columns},
    {.name = "a row in pieces", .text = kOneRow, .sums = 1, .length = 100000, .fuse = true, .kernels = 2},
    {.name = "columns in pieces", .text = kFewColumns, .sums = 32, .length = 20000, .columns = true, .fuse = true, .shape = plan::is_columns, .kernels = 2},
    {.name = "serial rows", .text = kSerialRows, .sums = 32, .length = 32768, .columns = true, .fuse = true, .kernels = 2},
    {.name = "moments of rows", .text = kRowMoments, .sums = 32, .length = 20000, .moments = true},
    {.name = "moments of columns", .text = kColumnMoments, .sums = 32, .length = 20000, .columns = true, .moments = true, .shape = plan::is_columns},
    {.name = "moments of rows in pieces", .text = kFewRowMoments, .sums = 1, .length = 200000, .fuse = true, .moments = true, .kernels = 2},
};
constexpr Schedule kCpuSchedules[] = {
    {.name = "rows", .text = kRows, .sums = 32, .length = 30000},
    {.name = "rows, two sums", .text = kSiblings, .sums = 32, .length = 10000},
    {.name = "columns", .text = kColumns, .sums = 40, .length = 10000, .columns = true, .shape = plan::is_columns},
    {.name = "long columns", .text = kColumns, .sums = 33, .length = 100000, .columns = true, .shape = plan::is_columns},
    {.name = "a row in pieces", .text = kOneRow, .sums = 1, .length = 100000, .fuse = true, .kernels = 2},
    {.name = "columns in pieces", .text = kFewColumns, .sums = 32, .length = 30000, .columns = true, .fuse = true, .shape = plan::is_columns, .kernels = 2},
    {.name = "moments of rows", .text = kRowMoments, .sums = 32, .length = 30000, .moments = true},
    {.name = "moments of columns", .text = kColumnMoments, .sums = 40, .length = 30000, .columns = true, .moments = true, .shape = plan::is_columns},
};

std::string text_of(const Schedule& schedule, const std::string& device) {
  std::string text = on_device(schedule.text, device);
  for (const auto& [word, number] : {std::pair("LENGTH", schedule.length), std::pair("SUMS", schedule.sums)})
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, std::strlen(word), std::to_string(number));
  return text;
}

loops::Program program_of(const Schedule& schedule, const Target& target, const std::string& device) {
  loops::Program program = loops::parse(text_of(schedule, device));
  return schedule.fuse ? schedule::fuse(std::move(program), target, Options(), nullptr) : program;
}

// ---- What a sum may lose ----------------------------------------------------------------------------------------

// ATen's on the CPU: four levels, of which each takes a block's sum of the one below. Terms that lie side by side are dealt
// out to `lanes` of them.
float cascade_sum(const std::vector<float>& terms, size_t lanes) {
  int power = 4;
  while ((size_t{1} << (4 * power)) * lanes < terms.size()) ++power;
  std::vector<std::array<float, 4>> level(lanes, std::array<float, 4>{});
  for (size_t i = 0; i < terms.size(); ++i) {
    std::array<float, 4>& levels = level[i % lanes];
    levels[0] += terms[i];
    for (size_t l = 1; l < 4 && ((i / lanes + 1) & ((size_t{1} << (l * static_cast<size_t>(power))) - 1)) == 0; ++l) {
      levels[l] += levels[l - 1];
      levels[l - 1] = 0;
    }
  }
  float sum = 0;
  for (const std::array<float, 4>& levels : level) sum += ((levels[0] + levels[1]) + levels[2]) + levels[3];
  return sum;
}

// The squared deviations of Welford's updates, one after the other.
float chain_deviations(const std::vector<float>& terms) {
  float mean = 0, deviations = 0, count = 0;
  for (float term : terms) {
    const float delta = term - mean;
    mean += delta / ++count;
    deviations += delta * (term - mean);
  }
  return deviations;
}

struct Error {
  double squares = 0, eager_squares = 0;
  int samples = 0;

  // `reference`: what eager makes of it.
  void add(double found, double exact, double reference, double scale) {
    const double off = (found - exact) / scale, eager = (reference - exact) / scale;
    squares += off * off;
    eager_squares += eager * eager;
    ++samples;
  }
  double rms() const { return std::sqrt(squares / samples); }
  double eager() const { return std::sqrt(eager_squares / samples); }
  double allowed() const { return 2 * eager() + 0x1p-24; }
};

struct Errors {
  Error sum, deviations;
};

void compare(const Schedule& schedule, const std::vector<float>& terms, size_t number, const std::vector<runtime::Value>& results, Errors& errors) {
  double exact = 0, scale = 0;
  for (float term : terms) {
    exact += static_cast<double>(term);
    scale += std::fabs(static_cast<double>(term));
  }
  const double found = static_cast<const float*>(results[0].tensor.data)[number];
  if (!schedule.moments) {
    errors.sum.add(found, exact, cascade_sum(terms, schedule.columns ? 1 : 32), scale);
    return;
  }
  const auto count = static_cast<double>(terms.size());
  const double mean = exact / count;
  double squares = 0;
  for (float term : terms) squares += (static_cast<double>(term) - mean) * (static_cast<double>(term) - mean);
  errors.sum.add(found, mean, static_cast<float>(mean), scale / count);
  const double deviations = static_cast<const float*>(results[1].tensor.data)[number];
  errors.deviations.add(deviations, squares, chain_deviations(terms), squares);
}

template <class Program>
void run_samples(const Schedule& schedule, Program& program, const Terms& kind, Errors& errors) {
  const auto sums = static_cast<size_t>(schedule.sums), length = static_cast<size_t>(schedule.length);
  std::vector<std::vector<float>> terms(sums, std::vector<float>(length));
  for (size_t seed = 0, sample = 0; sample < 32; ++seed, sample += sums) {
    Noise noise(seed + 1);
    for (auto& row : terms)
      for (size_t i = 0; i < length; ++i) row[i] = static_cast<float>(kind.term(static_cast<int64_t>(i), noise.next()));
    std::vector<int64_t> sizes{schedule.sums, schedule.length};
    if (schedule.columns) std::swap(sizes[0], sizes[1]);
    runtime::TensorRef x = program.host.empty_strided(DType::F32, {}, sizes, runtime::contiguous_strides(sizes));
    auto* memory = static_cast<float*>(x.data);
    for (size_t r = 0; r < sums; ++r)
      for (size_t i = 0; i < length; ++i) memory[schedule.columns ? i * sums + r : r * length + i] = terms[r][i];
    std::vector<runtime::Value> inputs;
    inputs.emplace_back(std::move(x));
    const std::vector<runtime::Value> results = program.executable->run(program.host, std::move(inputs));
    for (size_t r = 0; r < sums; ++r) compare(schedule, terms[r], r, results, errors);
  }
}

template <class Program>
void check(const Schedule& schedule, Program& program, std::span<const Terms> kinds) {
  const plan::Plan& plan = program.executable->plan();
  CHECK(std::ranges::count_if(plan.steps, [](const plan::Step& step) { return std::holds_alternative<plan::Launch>(step); }) ==
        static_cast<int64_t>(schedule.kernels));
  CHECK(schedule.shape(plan.kernels[plan::KernelId(0)].mapping));
  for (const Terms& kind : kinds) {
    Errors errors;
    run_samples(schedule, program, kind, errors);
    for (const Error* error : {&errors.sum, &errors.deviations}) {
      if (error->samples == 0) continue;
      INFO(kind.name << (error == &errors.deviations ? ", deviations" : "") << ": " << error->rms() << ", eager's " << error->eager() << ", allowed "
                     << error->allowed());
      CHECK(error->rms() <= error->allowed());
    }
  }
}

}  // namespace

TEST_CASE("sums of the CPU target are as exact as eager's", "[sums]") {
  for (const Schedule& schedule : kCpuSchedules) {
    DYNAMIC_SECTION(schedule.name) {
      const Target target = machine_target();
      CpuProgram program(program_of(schedule, target, "cpu"), target, 2);
      check(schedule, program, kTerms);
    }
  }
}

TEST_CASE("sums of the CUDA target are as exact as eager's", "[cuda][sums]") {
  const Target target = cuda_target("sm_90a", 4);  // few enough that each thread takes many terms
  for (const Schedule& schedule : kGpuSchedules) {
    DYNAMIC_SECTION(schedule.name) {
      CudaProgram program(program_of(schedule, target, "cuda:0"), {}, target);
      check(schedule, program, std::span(kTerms).first(2));  // emulation is slow
    }
  }
}
