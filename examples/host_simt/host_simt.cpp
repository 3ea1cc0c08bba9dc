// A target for cxxinductor: kernels as a GPU has them, threads in blocks, compiled by a C++ compiler and run on threads of the host. It shows what a
// target outside of the tree has to give (cxxinductor/target.h), not how to be fast.
#include <cxxinductor/target.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace {

using namespace cxxinductor;

// simt.h, and the host's versions of intrinsics/cuda, by name.
const std::map<std::string_view, std::string_view> own_files = {
#include "texts.inc"
};

std::runtime_error failure(const std::string& of) { return std::runtime_error(of + ": " + std::strerror(errno)); }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A folder of its own, gone at the end of the scope.
struct TemporaryFolder {
  std::string path = std::filesystem::temp_directory_path() / "host_simt_XXXXXX";
  TemporaryFolder() {
    if (!mkdtemp(path.data())) throw failure("a temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

// Without a shell. What the compiler says goes to `log`.
void run_compiler(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t process = 0;
  errno = posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (errno != 0) throw failure(words[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) throw failure(words[0]);
  if (status != 0) throw std::runtime_error(read_file(log).substr(0, 4000));
}

std::string runner_of(const std::string& entry) { return "host_simt_run_" + entry; }

// `source` and a function for each entry that runs some blocks of a launch.
std::string unit_of(const KernelSource& source) {
  std::string unit = std::string(own_files.at("simt.h")) + source.text + "\n";
  for (const std::string& entry : source.entries)
    unit += "extern \"C\" __attribute__((visibility(\"default\"))) bool " + runner_of(entry) +
            "(void* const* arguments, const uint32_t* grid, const uint32_t* block, int64_t shared_bytes, uint64_t first, uint64_t last) {\n"
            "  return host_simt::run(&" +
            entry + ", arguments, grid, block, shared_bytes, first, last);\n}\n";
  return unit;
}
using Runner = bool (*)(void* const* arguments, const uint32_t* grid, const uint32_t* block, int64_t shared_bytes, uint64_t first, uint64_t last);

std::string compile(const KernelSource& source, const TargetOptions& options) {
  const TemporaryFolder folder;
  const std::string text = folder.path + "/kernel.cpp", object = folder.path + "/kernel.so";
  write_file(text, unit_of(source));
  for (const auto& [name, file] : source.files) {
    const auto own = own_files.find(name);
    write_file(folder.path + "/" + name, own == own_files.end() ? file : std::string(own->second));
  }
  // Sums and products as they stand, as GPUs compute them; integers that wrap.
  run_compiler({HOST_SIMT_COMPILER, "-std=c++20", "-O" + options.at("optimize"), "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fwrapv",
                "-fno-strict-aliasing", "-w", "-I" + folder.path, text, "-o", object},
               folder.path + "/log");
  return read_file(object);
}

struct Module {
  int file = -1;  // open as long as the library: its name tells the loader one library from another
  void* library = nullptr;
  uint64_t threads = 1;
};

void* load(const std::string& code, const TargetOptions& options) {
  const uint64_t threads = std::stoul(options.at("threads"));
  const int file = memfd_create("host_simt", MFD_CLOEXEC);
  if (file < 0 || write(file, code.data(), code.size()) != static_cast<ssize_t>(code.size())) throw failure("memory for code");
  void* const library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    close(file);
    throw std::runtime_error(dlerror());
  }
  return new Module{file, library, threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency())};
}

void unload(void* module) {
  auto* const loaded = static_cast<Module*>(module);
  dlclose(loaded->library);
  close(loaded->file);
  delete loaded;
}

void launch(void* module, const KernelLaunch& launch) {
  const Module& loaded = *static_cast<Module*>(module);
  const auto run = reinterpret_cast<Runner>(dlsym(loaded.library, runner_of(launch.entry).c_str()));
  if (!run) throw std::runtime_error("the code has no such kernel");
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2], threads = std::min(loaded.threads, blocks);
  std::atomic<bool> meets = true;
  const auto work = [&](uint64_t number) {
    const uint64_t first = blocks * number / threads, last = blocks * (number + 1) / threads;
    if (!run(launch.arguments, launch.grid.data(), launch.block.data(), launch.shared_bytes, first, last)) meets = false;
  };
  std::vector<std::thread> others;
  for (uint64_t number = 1; number < threads; ++number) others.emplace_back(work, number);
  if (threads > 0) work(0);
  for (std::thread& other : others) other.join();
  if (!meets) throw std::runtime_error("a barrier that not all threads reach");
}

}  // namespace

extern "C" const RegisteredTarget* cxxinductor_target() {
  static const RegisteredTarget target{
      .name = "host_simt",
      .version = std::string("2, ") + HOST_SIMT_COMPILER + " " + __VERSION__,
      .figures = {.multiprocessors = 4, .bytes_per_second = 2e9, .instructions_per_second = 2e9},
      .options = {{"threads", "0", "threads of the host that run blocks; 0: one per core"}, {"optimize", "1", "the compiler's level, 0 to 3"}},
      .compile = compile,
      .load = load,
      .unload = unload,
      .launch = launch,
  };
  return &target;
}
