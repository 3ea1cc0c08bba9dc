#include "driver/dump.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "codegen/templates.h"
#include "ir/device_types.h"
#include "support/error.h"
#include "support/files.h"

namespace cxxinductor::driver {
namespace {

constexpr unsigned kFolderMode = 0777;  // as the umask says: dumps are for others to look at

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file)
    throw_user_error("cannot write the dump {}: set CXXINDUCTOR_DUMP_DIR to a folder you may write", path);
}

bool wants(const std::string& what, std::string_view item) {
  const std::string padded = "," + what + ",";
  return padded.find("," + std::string(item) + ",") != std::string::npos || padded.find(",all,") != std::string::npos;
}

void write_templates(const Report& report, const std::string& kernels) {
  std::map<std::string, std::string> templates;
  for (const Report::KernelSource& source : report.kernel_sources) templates.merge(codegen::included_templates(source.text));
  for (const auto& [name, text] : templates) {
    make_folders(join_path(kernels, name.substr(0, name.find('/'))), kFolderMode);
    write_file(join_path(kernels, name), text);
  }
}

void write_kernels(const Report& report, const std::string& root) {
  const std::string kernels = join_path(root, "kernels");
  make_folders(kernels, kFolderMode);
  std::string commands =
      "Each command compiles a kernel's source as it stands here, edits included, and times it alone against a copy "
      "of\n"
      "as many bytes; --check compares it with the interpreter first. What kernels call lies in the folders beside "
      "them,\n"
      "which all kernels share: to compile a source by hand, this folder is the include path.\n\n";
  for (size_t k = 0; k < report.kernel_sources.size(); ++k) {
    const auto& [name, device, source] = report.kernel_sources[k];
    write_file(join_path(kernels, fmt::format("{}{}", name, info(device.type).source_extension)), source);
    write_file(join_path(kernels, name + ".plan"), report.kernel_plans[k]);
    commands += fmt::format("python -m cxxinductor.time_kernel '{}' {}\n", root, name);
  }
  write_templates(report, kernels);
  write_file(join_path(kernels, "README.txt"), commands);
}

std::string fresh_folder(const std::string& base, const std::string& name) {
  make_folders(base, kFolderMode);
  for (int n = 0; n < 100000; ++n) {
    std::string candidate = join_path(base, fmt::format("{}.{:02}", name, n));
    if (::mkdir(candidate.c_str(), kFolderMode) == 0) return candidate;
    if (errno != EEXIST) throw_user_error("cannot create the dump folder {}: {}", candidate, std::strerror(errno));
  }
  throw_user_error("the dump folder {} is full", base);
}

}  // namespace

std::string write_dump(const Report& report, const std::string& name, const std::string& folder,
                       const std::string& what) {
  const std::string root = fresh_folder(folder, name);
  const auto write_form = [&](std::string_view item, const char* file, const std::string& text) {
    if (wants(what, item) && !text.empty()) write_file(join_path(root, file), text);
  };
  write_form("calls", "calls.txt", report.calls_text);
  write_form("graph", "graph.txt", report.graph_text);
  write_form("loops", "loops.txt", report.loops_text);
  write_form("loops", "fused.txt", report.fused_text);
  write_form("loops", "missed_fusions.txt", report.missed_fusion_text);
  write_form("plan", "plan.txt", report.plan_text);
  if (wants(what, "source") && !report.plan_text.empty()) write_kernels(report, root);
  return root;
}

}  // namespace cxxinductor::driver
