#include "driver/dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "codegen/templates.h"
#include "ir/device_types.h"
#include "support/error.h"
#include "support/files.h"
#include "support/options.h"

namespace cxxinductor::driver {
namespace {

constexpr unsigned kFolderMode = 0777;  // as the umask says: dumps are for others to look at

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file) throw_user_error("cannot write the dump {}: set CXXINDUCTOR_DUMP_DIR to a folder you may write", path);
}

constexpr std::string_view after_prefix = "after:";

bool wants(const std::vector<std::string>& what, std::string_view item) {
  return std::ranges::any_of(what, [&](const std::string& word) { return word == item || word == "all"; });
}

void write_stages(const Report& report, const std::vector<std::string>& what, const std::string& root) {
  int number = 0;
  for (const Stage& stage : stage_table()) {
    ++number;
    for (const auto& [name, text] : report.texts) {
      const size_t plus = name.find('+');  // in front of the name of a text pass
      if (name.substr(0, plus) != stage.name) continue;
      const std::string of = plus == name.npos ? name : name.substr(plus + 1);
      if (wants(what, to_string(stage.makes)) || wants(what, fmt::format("{}{}", after_prefix, of)))
        write_file(join_path(root, fmt::format("{:02}-{}.txt", number, name)), text);
    }
  }
}

void write_templates(const Report& report, const std::string& kernels) {
  std::map<std::string, std::string> templates;
  for (const Report::KernelSource& source : report.kernel_sources) templates.merge(codegen::included_templates(source.text));
  for (const auto& [name, text] : templates) {
    make_folders(join_path(kernels, name.substr(0, name.rfind('/'))), kFolderMode);
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

std::string settings_text(const Options& options, const Targets& targets, const TextPasses& text_passes) {
  std::string text = fmt::format("options: {}\n", to_string(options));
  for (Device device : targets.devices()) text += fmt::format("target: {} {}\n", to_string(device), targets.of(device).arch);
  for (const auto& pass : text_passes) text += fmt::format("registered pass: {}\n", describe(*pass));
  return text;
}

std::string write_dump(const Report& report, const std::string& name, const std::string& folder, const std::string& what) {
  const std::string root = fresh_folder(folder, name);
  const std::vector<std::string> items = list_items(what);
  const auto write_text = [&](std::string_view item, const char* file, const std::string& text) {
    if (wants(items, item) && !text.empty()) write_file(join_path(root, file), text);
  };
  write_text("all", "settings.txt", report.settings_text);
  write_text("calls", "calls.txt", report.calls_text);
  write_text("loops", "missed_fusions.txt", report.missed_fusion_text);
  write_stages(report, items, root);
  if (wants(items, "source") && report.texts.contains("source")) write_kernels(report, root);
  return root;
}

void check_dump(const Options& options, std::span<const std::string> text_passes) {
  for (const std::string& item : list_items(options.dump)) {
    if (!item.starts_with(after_prefix)) continue;
    const std::string name = item.substr(after_prefix.size());
    if (std::ranges::find(stage_table(), name, &Stage::name) != stage_table().end() || std::ranges::find(text_passes, name) != text_passes.end()) continue;
    std::vector<std::string_view> names;
    for (const Stage& stage : stage_table()) names.push_back(stage.name);
    names.insert(names.end(), text_passes.begin(), text_passes.end());
    throw_user_error("option 'dump': expected the name of a stage, found '{}'; known are {}", name, fmt::join(names, ", "));
  }
}

}  // namespace cxxinductor::driver
