// Each intrinsic of kernels_templates/intrinsics/cuda has a host version of the same name in tests/emulation, and rows that compare the two on a
// GPU (intrinsic_rows.h). Without a GPU the rows are compiled, and run on the host.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "emulation/host_text.h"
#include "kernels/gpu_host.h"
#include "kernels/intrinsic_rows.h"
#include "unit/catch.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
namespace fs = std::filesystem;

namespace {

const fs::path root = CXXINDUCTOR_SOURCE_DIR;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// File name -> names of the functions that it defines, or the file of examples/host_simt that it includes. A call in a return statement looks like one.
std::map<std::string, std::set<std::string>> functions_in(const fs::path& folder) {
  static const std::regex definition(R"((\w+) (cxxi_\w+)\()"), include(R"re(#include "(host_simt/[\w/]+\.cuh)")re");
  std::map<std::string, std::set<std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string text = read_text(entry.path());
    if (std::smatch match; std::regex_search(text, match, include)) text = read_text(root / "examples" / match[1].str());
    auto& names = found[entry.path().filename()];
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match)
      if ((*match)[1] != "return") names.insert((*match)[2]);
  }
  return found;
}

struct Results {
  std::vector<unsigned char> a, b, r;
};
Results operands_of(size_t number) {
  const IntrinsicRow& row = intrinsic_rows()[number];
  const size_t results = static_cast<size_t>(row.threads) * static_cast<size_t>(row.blocks * row.results_per_thread);
  return {draw_operand(row, row.a, 2 * number), draw_operand(row, row.b, 2 * number + 1),
          std::vector<unsigned char>(results * static_cast<size_t>(bytes_of(row.result)), 0xa5)};
}

// All rows, compiled once.
const HostText& host_rows() {
  static const HostText text = [] {
    std::vector<std::string> names;
    for (size_t number = 0; number < intrinsic_rows().size(); ++number) names.push_back(kernel_name(number));
    return HostText(rows_text(true, codegen::Templates::Included), names, "intrinsics");
  }();
  return text;
}
Results run_on_host(size_t number, uint64_t seed) {
  const IntrinsicRow& row = intrinsic_rows()[number];
  Results results = operands_of(number);
  void* pointers[] = {results.a.data(), results.b.data(), results.r.data()};
  void* args[] = {&pointers[0], &pointers[1], &pointers[2]};
  CHECK(host_rows().run(number, args, static_cast<unsigned>(row.threads), row.blocks, seed) == "");
  return results;
}

Results run_on_gpu(size_t number, GpuMachine& machine, targets::CudaContext& context, const std::string& cubin) {
  const IntrinsicRow& row = intrinsic_rows()[number];
  const plan::LaunchShape shape{.block_x = row.threads, .dynamic_shared_bytes = row.shared_bytes};
  Results results = operands_of(number);
  std::vector<void*> pointers, args;
  for (const auto* bytes : {&results.a, &results.b, &results.r}) {
    pointers.push_back(machine.allocate(std::ssize(*bytes)));
    machine.to_device(pointers.back(), bytes->data(), std::ssize(*bytes));
  }
  for (void*& pointer : pointers) args.push_back(&pointer);
  context.launch(context.load(cubin, kernel_name(number), shape), {row.blocks}, shape, nullptr, args.data(), row.names);
  machine.synchronize();
  machine.to_host(results.r.data(), pointers[2], std::ssize(results.r));
  for (void* pointer : pointers) machine.free(pointer);
  return results;
}

// The first few results that differ, with the thread's operands.
std::string mismatches(const IntrinsicRow& row, const Results& gpu, const Results& host) {
  const auto hex = [](const std::vector<unsigned char>& bytes, const Operand& operand, size_t thread) {
    const size_t size = static_cast<size_t>(bytes_of(operand.element));
    std::string text;
    for (size_t e = 0; e < static_cast<size_t>(operand.per_thread) && e < 8; ++e) {
      uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + (thread * static_cast<size_t>(operand.per_thread) + e) * size, size);
      text += fmt::format(" {:#x}", bits);
    }
    return text;
  };
  const size_t size = static_cast<size_t>(bytes_of(row.result));
  std::string text;
  size_t count = 0;
  for (size_t at = 0; at < host.r.size(); at += size) {
    const std::string difference = disagreement(row, gpu.r.data() + at, host.r.data() + at);
    if (difference.empty() || ++count > 6) continue;
    const size_t thread = at / size / static_cast<size_t>(row.results_per_thread);
    text += fmt::format("  thread {}, result {}: {}; a ={}, b ={}\n", thread, at / size % static_cast<size_t>(row.results_per_thread), difference,
                        hex(host.a, row.a, thread), hex(host.b, row.b, thread));
  }
  return count == 0 ? "" : fmt::format("{} ({}): {} of {} results differ\n{}", row.names, row.label, count, host.r.size() / size, text);
}

}  // namespace

TEST_CASE("each intrinsic has a host version in the file of the same name, and a row", "[intrinsics]") {
  const auto device = functions_in(root / "kernels_templates/intrinsics/cuda"), host = functions_in(root / "tests/emulation/intrinsics/cuda");
  std::string rows = " ";
  for (const IntrinsicRow& row : intrinsic_rows()) rows += row.names + " ";
  size_t found = 0;
  for (const auto& [file, names] : device) {
    REQUIRE(host.contains(file));
    for (const std::string& name : names) {
      INFO(file << ": " << name);
      CHECK(host.at(file).contains(name));
      CHECK(rows.find(" " + name + " ") != std::string::npos);
      ++found;
    }
  }
  CHECK(host.size() == device.size());
  CHECK(found > 40);
}

TEST_CASE("examples/host_simt has a host version of each intrinsic that the prelude includes", "[intrinsics]") {
  static const std::regex include(R"re(#include "intrinsics/cuda/(\w+\.cuh)")re");
  const auto device = functions_in(root / "kernels_templates/intrinsics/cuda"), example = functions_in(root / "examples/host_simt/intrinsics/cuda");
  const std::string prelude = read_text(root / "kernels_templates/cuda/prelude.cuh");
  size_t files = 0;
  for (std::sregex_iterator match(prelude.begin(), prelude.end(), include), end; match != end; ++match, ++files) {
    const std::string file = (*match)[1];
    REQUIRE(example.contains(file));
    for (const std::string& name : device.at(file)) {
      INFO(file << ": " << name);
      CHECK(example.at(file).contains(name));
    }
  }
  CHECK(files == example.size());
}

TEST_CASE("NVRTC compiles every intrinsic without a warning", "[cuda][nvrtc][intrinsics]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const std::string text = rows_text(std::string_view(arch) == "sm_90a", codegen::Templates::Inlined);
    CHECK(nvrtc->compile_to_cubin(text, arch, "intrinsics").log == "");
  }
}

TEST_CASE("host versions of intrinsics give the same in every order of threads", "[intrinsics]") {
  for (size_t number = 0; number < intrinsic_rows().size(); ++number) {
    const IntrinsicRow& row = intrinsic_rows()[number];
    INFO(row.names << " (" << row.label << ")");
    const Results first = run_on_host(number, 1);
    for (uint64_t seed = 2; seed <= 4; ++seed) CHECK(mismatches(row, run_on_host(number, seed), first) == "");
  }
}

TEST_CASE("intrinsics on the GPU compute what their host versions compute", "[gpu][intrinsics]") {
  std::string why;
  const std::shared_ptr<GpuMachine> machine = find_gpu(&why);
  if (!machine) {
    WARN("skipped: " << why);
    return;
  }
  const std::string arch = machine->driver.properties(0).arch;
  const bool is_sm_90a = arch == "sm_90a";
  const std::string cubin = machine->nvrtc.get().compile_to_cubin(rows_text(is_sm_90a, codegen::Templates::Inlined), arch, "intrinsics").cubin;
  targets::CudaContext context(machine->driver, 0);
  for (size_t number = 0; number < intrinsic_rows().size(); ++number) {
    const IntrinsicRow& row = intrinsic_rows()[number];
    if (row.is_sm_90a && !is_sm_90a) continue;
    INFO(row.names << " (" << row.label << ")");
    Results gpu;
    REQUIRE_NOTHROW(gpu = run_on_gpu(number, *machine, context, cubin));  // after a fault no launch succeeds
    const std::string differences = mismatches(row, gpu, run_on_host(number, 1));
    if (!differences.empty()) FAIL_CHECK(differences);
  }
}
