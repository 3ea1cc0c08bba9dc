#include "driver/dump.h"

#include <filesystem>
#include <fstream>

#include "support/error.h"

namespace cxxinductor::driver {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file)
    throw_user_error("cannot write the dump {}: set CXXINDUCTOR_DUMP_DIR to a folder you may write", path.string());
}

bool wants(const std::string& what, std::string_view item) {
  const std::string padded = "," + what + ",";
  return padded.find("," + std::string(item) + ",") != std::string::npos || padded.find(",all,") != std::string::npos;
}

void write_kernels(const Report& report, const fs::path& root) {
  const fs::path kernels = root / "kernels";
  fs::create_directory(kernels);
  std::string commands =
      "Each command compiles a kernel's source as it stands here, edits included, and times it alone against a copy "
      "of\n"
      "as many bytes; --check compares it with the interpreter first.\n\n";
  for (size_t k = 0; k < report.kernel_sources.size(); ++k) {
    const auto& [name, device, source] = report.kernel_sources[k];
    const char* extension = device.type == DeviceType::Cuda ? ".cu" : ".cpp";
    write_file(kernels / (name + extension), source);
    write_file(kernels / (name + ".plan"), report.kernel_plans[k]);
    commands += fmt::format("python -m cxxinductor.time_kernel '{}' {}\n", root.string(), name);
  }
  write_file(kernels / "README.txt", commands);
}

fs::path fresh_folder(const fs::path& base, const std::string& name) {
  for (int n = 0; n < 100000; ++n) {
    fs::path candidate = base / fmt::format("{}.{:02}", name, n);
    std::error_code error;
    fs::create_directories(base, error);
    if (fs::create_directory(candidate, error)) return candidate;
    if (error) throw_user_error("cannot create the dump folder {}: {}", candidate.string(), error.message());
  }
  throw_user_error("the dump folder {} is full", base.string());
}

}  // namespace

std::string write_dump(const Report& report, const std::string& name, const std::string& folder,
                       const std::string& what) {
  const fs::path root = fresh_folder(folder, name);
  if (wants(what, "calls") && !report.calls_text.empty()) write_file(root / "calls.txt", report.calls_text);
  if (wants(what, "graph")) write_file(root / "graph.txt", report.graph_text);
  if (wants(what, "loops")) {
    write_file(root / "loops.txt", report.loops_text);
    write_file(root / "fused.txt", report.fused_text);
    write_file(root / "missed_fusions.txt", report.missed_fusion_text);
  }
  if (wants(what, "plan")) write_file(root / "plan.txt", report.plan_text);
  if (wants(what, "source")) write_kernels(report, root);
  return root.string();
}

}  // namespace cxxinductor::driver
