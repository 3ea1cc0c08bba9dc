// Mutated files of every format that may be anybody's: whatever comes, the answer is a model that is whole, or an error that names the
// place. Under the asan preset a crash is what would only be luck elsewhere.
//
//   file_fuzz COUNT SEED [FIRST]      1,000,000 files take about an hour on one core
//
// File number i depends on SEED and i alone: COUNT 1 and FIRST i make it again, and leave it in file_fuzz_last.bin. The number of the file
// under way is in file_fuzz_last.txt, for crashes.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "fuzz/file_targets.h"
#include "support/error.h"

// A file of a few pages asks for no gigabyte: where it does, the sanitizer ends the run.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=1024:detect_leaks=0"; }

namespace {

using namespace cxxinductor;
using fuzz::Outcome;

constexpr double longest_seconds = 10;  // for a file, of this process alone
constexpr const char* last_number = "file_fuzz_last.txt";
constexpr const char* last_file = "file_fuzz_last.bin";

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Run {
  uint64_t seed = 0;
  std::vector<std::unique_ptr<fuzz::FileTarget>> targets = fuzz::file_targets();
  std::array<std::array<uint64_t, 3>, 8> outcomes{};  // by target

  size_t target_of(uint64_t number) const { return number % targets.size(); }
  std::string file_of(uint64_t number) const {
    fuzz::Random random(seed * 0x9e3779b97f4a7c15 + number);
    return targets[target_of(number)]->make(random);
  }
  // Whether the reader did what it may.
  bool try_number(uint64_t number) {
    const std::string file = file_of(number);
    const double start = cpu_seconds();
    try {
      const Outcome outcome = fuzz::try_file(*targets[target_of(number)], file);
      ++outcomes[target_of(number)][static_cast<size_t>(outcome)];
      if (cpu_seconds() - start < longest_seconds) return true;
      return fail(number, file, "it took too long");
    } catch (const std::exception& error) {
      return fail(number, file, error.what());
    }
  }
  bool fail(uint64_t number, const std::string& file, const char* why) const {
    std::ofstream(last_file, std::ios::binary) << file;
    std::fprintf(stderr, "seed %llu, file %llu (%s): %s; it is in %s\n", static_cast<unsigned long long>(seed), static_cast<unsigned long long>(number),
                 std::string(targets[target_of(number)]->name()).c_str(), why, last_file);
    return false;
  }
  void report() const {
    for (size_t t = 0; t < targets.size(); ++t)
      std::printf("%s: %llu read, %llu refused, %llu unsupported\n", std::string(targets[t]->name()).c_str(), static_cast<unsigned long long>(outcomes[t][0]),
                  static_cast<unsigned long long>(outcomes[t][1]), static_cast<unsigned long long>(outcomes[t][2]));
  }
  // A mutator that spoils everything, or nothing, tests nothing.
  bool is_useful() const {
    for (size_t t = 0; t < targets.size(); ++t)
      if (outcomes[t][0] == 0 || outcomes[t][1] == 0) return false;
    return true;
  }
};

class Progress {
 public:
  explicit Progress(uint64_t count) : count_(count) {}
  void show(uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::seconds(5)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "%llu of %llu files, %.0f per second\n", static_cast<unsigned long long>(done), static_cast<unsigned long long>(count_),
                 static_cast<double>(done) / seconds);
  }

 private:
  uint64_t count_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
};

}  // namespace

int main(int count_of_arguments, char** arguments) {
  if (count_of_arguments < 3) {
    std::fprintf(stderr, "usage: file_fuzz COUNT SEED [FIRST]\n");
    return 2;
  }
  const auto number = [&](int i) { return i < count_of_arguments ? std::strtoull(arguments[i], nullptr, 10) : 0; };
  const uint64_t count = number(1), first = number(3);
  Run run;
  run.seed = number(2);
  for (const auto& target : run.targets) {
    fuzz::Random none(0);
    (void)target->make(none);
  }
  std::FILE* const last = std::fopen(last_number, "w");
  Progress progress(count);
  bool all = true;
  for (uint64_t i = first; i < first + count; ++i) {
    if (last) {
      std::rewind(last);
      std::fprintf(last, "seed %llu, file %llu   ", static_cast<unsigned long long>(run.seed), static_cast<unsigned long long>(i));
      std::fflush(last);
    }
    if (count == 1) std::ofstream(last_file, std::ios::binary) << run.file_of(i);
    all &= run.try_number(i);
    progress.show(i - first);
  }
  if (last) std::fclose(last);
  run.report();
  if (all && count >= 1000 && !run.is_useful()) {
    std::fprintf(stderr, "every file of a kind was read, or every one refused: mutations that test nothing\n");
    return 1;
  }
  if (all) std::remove(last_number);
  return all ? 0 : 1;
}
