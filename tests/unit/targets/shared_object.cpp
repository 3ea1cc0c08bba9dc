// Loading units: what comes out is what was given, however names and descriptors are used again.
#include "targets/cpu/shared_object.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "support/error.h"
#include "support/files.h"
#include "targets/cpu/host_compiler.h"
#include "unit/catch.h"
#include "unit/runtime/child_process.h"
#include "unit/runtime/temporary_folder.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

namespace {

const std::vector<std::string>& object_flags() {
  static const std::vector<std::string> flags{"-shared", "-fPIC", "-O0"};
  return flags;
}

// An object whose function returns the number.
std::string object_returning(int number) {
  static std::map<int, std::string> made;
  std::string& bytes = made[number];
  if (bytes.empty()) bytes = HostCompiler({}).compile("extern \"C\" int number() { return " + std::to_string(number) + "; }", object_flags(), "unit");
  return bytes;
}

int number_of(const SharedObject& object) { return reinterpret_cast<int (*)()>(object.find("number"))(); }

int open_descriptors() { return static_cast<int>(file_names("/proc/self/fd").size()); }

}  // namespace

TEST_CASE("objects stay themselves when their descriptors are closed and used again") {
  TemporaryFolder folder;
  const std::vector<std::string> folders{folder.path()};
  const std::string first = object_returning(1), second = object_returning(2);
  const int before = open_descriptors();
  const SharedObject one(first, folders);
  // As a program does that becomes a daemon: all that is not standard is closed. None of it may be ours.
  CHECK(open_descriptors() == before);
  CHECK(in_child([&] {
          ::closefrom(3);
          const SharedObject two(second, folders);
          const SharedObject three(object_returning(1), folders);
          return number_of(one) == 1 && number_of(two) == 2 && number_of(three) == 1 ? 0 : 1;
        }) == 0);
  const SharedObject two(second, folders);
  CHECK(number_of(one) == 1);
  CHECK(number_of(two) == 2);
  CHECK(file_names(folder.path()).empty());
}

TEST_CASE("any number of objects needs no descriptors") {
  TemporaryFolder folder;
  const std::vector<std::string> folders{folder.path()};
  const std::string bytes = object_returning(1);
  CHECK(in_child([&] {
          const rlimit few{static_cast<rlim_t>(open_descriptors()) + 8, 64};
          if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
          std::vector<std::unique_ptr<SharedObject>> objects;
          for (int i = 0; i < 100; ++i) objects.push_back(std::make_unique<SharedObject>(bytes, folders));
          for (const auto& object : objects)
            if (number_of(*object) != 1) return 2;
          return 0;
        }) == 0);
}

TEST_CASE("a folder that cannot be written to, or executed from, leaves the next one, then memory") {
  TemporaryFolder good, mounted;
  const std::string bytes = object_returning(1), nowhere = good.path() + "/nowhere";
  CHECK(number_of(SharedObject(bytes, std::vector{nowhere, good.path()})) == 1);
  const SharedObject one(bytes, std::vector{nowhere}), two(object_returning(2), std::vector{nowhere});  // in memory
  CHECK(number_of(one) == 1);
  CHECK(number_of(two) == 2);
  CHECK_THROWS_AS(SharedObject("no object", std::vector{nowhere}), InternalError);
  CHECK_THROWS_WITH(SharedObject("no object", std::vector{nowhere}), mentions("no file can be made in " + nowhere));
  CHECK_THROWS_WITH(SharedObject("no object", std::vector{nowhere, good.path()}),
                    mentions("from any of 2 folders") && mentions("no file can be made in") && mentions("unit"));
  if (::mount("none", mounted.path().c_str(), "tmpfs", MS_NOEXEC, "size=1m") != 0) return;  // root only
  CHECK(number_of(SharedObject(bytes, std::vector{mounted.path()})) == 1);                  // in memory
  CHECK_THROWS_WITH(SharedObject("no object", std::vector{mounted.path()}), mentions("unit"));
  CHECK(number_of(SharedObject(bytes, std::vector{mounted.path(), good.path()})) == 1);
  ::umount(mounted.path().c_str());
}
