// Runs of the host compiler that do not go well: hanging ones, daemons, programs that handle children in their own way.
#include "targets/cpu/host_compiler.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/disk_cache.h"
#include "support/error.h"
#include "support/files.h"
#include "unit/catch.h"
#include "unit/runtime/child_process.h"
#include "unit/runtime/temporary_folder.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;
using namespace std::chrono_literals;

namespace {

std::string write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  return path;
}

ProcessResult run_script(const TemporaryFolder& folder, const std::string& text, const ProcessLimits& limits = {}) {
  return run_process(write_script(folder.path() + "/script", text), {}, folder.path(), limits);
}

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

// True once the process is gone, or a zombie that somebody else is to reap.
bool is_gone(const std::string& pid_file) {
  std::string pid;
  std::ifstream(pid_file) >> pid;
  if (pid.empty()) return false;
  for (int i = 0; i < 200; ++i) {
    std::ifstream stat("/proc/" + pid + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z") return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

}  // namespace

TEST_CASE("a process gives its output and exit code; one that does not start says why") {
  TemporaryFolder folder;
  const ProcessResult result = run_script(folder, "echo out; echo err >&2; echo $TMPDIR; cat; exit 3\n");
  CHECK(result.exit_code == 3);
  CHECK(result.output == "out\nerr\n" + folder.path() + "\n");
  CHECK(run_script(folder, "kill -9 $$\n").exit_code == -1);
  CHECK(run_process(folder.path() + "/missing", {}, "/tmp", {}).exit_code == 127);
  std::ofstream(folder.path() + "/text") << "no program";
  const ProcessResult text = run_process(folder.path() + "/text", {}, "/tmp", {});
  CHECK(text.exit_code == 126);
  CHECK(text.output.find("Permission denied") != std::string::npos);
}

TEST_CASE("the shell that waits for a process reads none of its arguments") {
  TemporaryFolder folder;
  const std::string odd = "a b; touch " + folder.path() + "/touched $(touch " + folder.path() + "/touched) '\" *";
  write_script(folder.path() + "/script", "printf '%s|' \"$@\"\n");
  CHECK(run_process(folder.path() + "/script", {odd, "", "-x"}, "/tmp", {}).output == odd + "||-x|");
  CHECK(file_names(folder.path()).size() == 1);
}

TEST_CASE("a process beyond its deadline is killed with all that it started") {
  TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = run_script(folder, "sleep 100 & echo $! > " + folder.path() + "/pid\necho begun; wait\n", {400ms, {}});
  CHECK(result.timed_out);
  CHECK(result.exit_code == -1);
  CHECK(result.output == "begun\n");
  CHECK(seconds_since(start) < 20);
  CHECK(is_gone(folder.path() + "/pid"));
}

TEST_CASE("an interrupted process is killed with all that it started") {
  TemporaryFolder folder;
  const std::string pid = folder.path() + "/pid";
  const auto begun = [&] { return ::access((pid + ".written").c_str(), F_OK) == 0; };
  CHECK_THROWS_AS(run_script(folder, "sleep 100 & echo $! > " + pid + "; touch " + pid + ".written; wait\n", {100s, begun}), Interrupted);
  CHECK(is_gone(pid));
  CHECK_THROWS_AS(run_script(folder, "sleep 100\n", {100s, []() -> bool { throw std::runtime_error("a bad check"); }}), std::runtime_error);
}

TEST_CASE("the end of a process is seen although what it left behind holds its output") {
  TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = run_script(folder, "sleep 60 & echo $! > " + folder.path() + "/pid; echo done; exit 4\n");
  CHECK(seconds_since(start) < 30);
  CHECK(result.exit_code == 4);
  CHECK(result.output == "done\n");
  std::string pid;
  std::ifstream(folder.path() + "/pid") >> pid;
  ::kill(std::stoi(pid), SIGKILL);
}

TEST_CASE("exit codes arrive whatever the program does with SIGCHLD") {
  TemporaryFolder folder;
  SECTION("ignored") {
    CHECK(in_child([&] {
            ::signal(SIGCHLD, SIG_IGN);
            if (run_script(folder, "exit 5\n").exit_code != 5) return 1;
            // The compiler waits for children of its own.
            return HostCompiler({}).compile("int x;", {"-shared", "-fPIC"}, "unit").empty() ? 2 : 0;
          }) == 0);
  }
  SECTION("a thread that reaps any child") {
    CHECK(in_child([&] {
            std::thread([] {
              while (true) {
                ::waitpid(-1, nullptr, 0);
                std::this_thread::sleep_for(1ms);
              }
            }).detach();
            for (int i = 0; i < 20; ++i)
              if (run_script(folder, "exit 5\n").exit_code != 5) return 1;
            return 0;
          }) == 0);
  }
}

TEST_CASE("a program whose standard descriptors are closed runs processes all the same") {
  TemporaryFolder folder;
  CHECK(in_child([&] {
          for (const int descriptor : {0, 1, 2}) ::close(descriptor);
          const ProcessResult result = run_script(folder, "echo out; echo err >&2; cat\n");
          return result.exit_code == 0 && result.output == "out\nerr\n" ? 0 : 1;
        }) == 0);
}

TEST_CASE("a compiler that hangs is a user error that names the option; its files are gone") {
  TemporaryFolder folder, temporary;
  const std::string path = write_script(folder.path() + "/c++",
                                        "[ \"$1\" = --version ] && echo slow 1.0 && exit 0\n"
                                        "case $1 in -print*) exit 1;; esac\n"
                                        "echo x > $TMPDIR/left; exec sleep 100\n");
  HostCompiler compiler({path, temporary.path()});
  CHECK_THROWS_AS(compiler.compile("", {}, "k_0", {300ms, {}}), UserError);
  CHECK_THROWS_WITH(compiler.compile("", {}, "k_0", {300ms, {}}), mentions("had not compiled k_0 after 0.3 s") && mentions("compile_timeout"));
  CHECK(file_names(temporary.path()).empty());
}

TEST_CASE("a compiler that was missing is found when it is there") {
  TemporaryFolder folder;
  HostCompiler compiler({folder.path() + "/c++", folder.path()});
  CHECK_THROWS_AS(compiler.identity(), UserError);
  write_script(folder.path() + "/c++", "[ \"$1\" = --version ] && echo found 1.0\n");
  CHECK(compiler.identity().find("found 1.0") != std::string::npos);
}

TEST_CASE("a compiler's identity follows links, sees changed files and the compiler behind a wrapper") {
  TemporaryFolder folder;
  const std::string wrapper = folder.path() + "/ccache", link = folder.path() + "/c++", proper = folder.path() + "/cc1plus";
  const auto write_wrapper = [&](const std::string& comment) {
    write_script(wrapper,
                 "# " + comment + "\n[ \"$1\" = --version ] && echo wrapped 1.0\n[ \"$1\" = -print-prog-name=cc1plus ] && echo " + proper + "\nexit 0\n");
  };
  write_wrapper("first");
  std::ofstream(proper) << "one";
  REQUIRE(::symlink(wrapper.c_str(), link.c_str()) == 0);
  HostCompiler compiler({link, folder.path()});
  const std::string first = compiler.identity();
  for (const std::string& part : {link, wrapper, proper, std::string("wrapped 1.0")}) CHECK(first.find(part) != std::string::npos);
  CHECK(compiler.identity() == first);
  // Another compiler behind the same wrapper, as a new process sees it.
  std::ofstream(proper) << "another";
  const std::string second = HostCompiler({link, folder.path()}).identity();
  CHECK(second != first);
  // Another wrapper: this process sees it too.
  write_wrapper("second, longer");
  const std::string third = compiler.identity();
  CHECK(third != second);
  CHECK(third != first);
}

TEST_CASE("a driver's identity is remembered for later processes; another compiler behind it, other surroundings and wrappers are asked") {
  TemporaryFolder folder;
  DiskCache cache(folder.path() + "/cache", "test");
  const std::string driver = folder.path() + "/g++", proper = folder.path() + "/cc1plus", runs = folder.path() + "/runs";
  const auto write_driver = [&](const std::string& version) {
    const std::string text = "#include <cstring>\n#include <fstream>\n#include <iostream>\nint main(int, char** given) {\n  std::ofstream(\"" + runs +
                             "\", std::ios::app) << 'x';\n  std::cout << (std::strcmp(given[1], \"--version\") == 0 ? \"" + version + "\" : \"" + proper +
                             "\") << std::endl;\n}\n";
    std::ofstream(driver, std::ios::binary) << HostCompiler({}).compile(text, {}, "driver");
    REQUIRE(::chmod(driver.c_str(), 0700) == 0);
  };
  write_driver("driver 1.0");
  std::ofstream(proper) << "one";
  // (the identity that a new process finds, how often it ran the driver)
  const auto ask = [&](const std::string& path) {
    std::ofstream(runs, std::ios::trunc).close();
    const std::string identity = HostCompiler({path, folder.path()}).identity({}, &cache);
    return std::pair(identity, std::filesystem::file_size(runs));
  };
  const auto [first, asked] = ask(driver);
  CHECK(asked == 2);
  CHECK(ask(driver) == std::pair(first, uintmax_t{0}));
  CHECK(HostCompiler({driver, folder.path()}).identity() == first);  // with the cache or without it

  std::ofstream(proper) << "another";
  const auto [second, asked_again] = ask(driver);
  CHECK(second != first);
  CHECK(asked_again == 2);
  CHECK(ask(driver) == std::pair(second, uintmax_t{0}));

  REQUIRE(::setenv("COMPILER_PATH", folder.path().c_str(), 1) == 0);
  CHECK(ask(driver) == std::pair(second, uintmax_t{2}));
  REQUIRE(::unsetenv("COMPILER_PATH") == 0);

  write_driver("driver 10.0");
  const auto [third, asked_for_third] = ask(driver);
  CHECK(third != second);
  CHECK(asked_for_third == 2);

  // What is remembered in a form that is none.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/cache")) std::ofstream(entry.path()) << "damaged";
  CHECK(ask(driver) == std::pair(third, uintmax_t{2}));

  // A program of another name, behind a link of this one.
  const std::string wrapper = folder.path() + "/ccache", link = folder.path() + "/links";
  REQUIRE(::mkdir(link.c_str(), 0700) == 0);
  std::filesystem::copy_file(driver, wrapper);
  REQUIRE(::symlink(wrapper.c_str(), (link + "/g++").c_str()) == 0);
  for (int i = 0; i < 2; ++i) CHECK(ask(link + "/g++").second == 2);
}
