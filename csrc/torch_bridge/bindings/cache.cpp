#include "torch_bridge/bindings/cache.h"

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "driver/plan_cache.h"
#include "torch_bridge/bindings/without_gil.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::bindings {
namespace {

namespace py = pybind11;

// work(cache) without the GIL, which callbacks of a remote store take; a default value where the cache is off.
template <class F>
auto with_cache(const Options& options, F&& work) -> decltype(work(std::declval<runtime::DiskCache&>())) {
  const WithoutGil scope;
  runtime::DiskCache* cache = torch_bridge::disk_cache(options);
  if (!cache) return {};
  return work(*cache);
}

py::object get(const std::string& key, const Options& options) {
  const auto found = with_cache(options, [&](runtime::DiskCache& cache) { return cache.get(key); });
  if (!found) return py::none();
  return py::bytes(reinterpret_cast<const char*>(found->data()), found->size());
}

bool put(const std::string& key, const std::string& bytes, const Options& options) {
  return with_cache(options, [&](runtime::DiskCache& cache) { return cache.put(key, bytes); });
}

std::set<std::string> take_used(const Options& options) {
  return with_cache(options, [](runtime::DiskCache& cache) { return cache.take_used(); });
}

py::object read_file(const std::string& name, const Options& options) {
  const auto found = with_cache(options, [&](runtime::DiskCache& cache) { return cache.read_file(name); });
  return found ? py::object(py::bytes(*found)) : py::none();
}

bool write_file(const std::string& name, const std::string& file, const Options& options) {
  return with_cache(options, [&](runtime::DiskCache& cache) { return cache.write_file(name, file); });
}

// The functions do not raise. They are never released: threads of the pool may be about to call them.
void set_remote_cache(const py::object& get, const py::object& put) {
  if (get.is_none()) return torch_bridge::set_remote_cache(nullptr);
  const auto* functions = new std::pair<py::object, py::object>(get, put);
  auto store = std::make_shared<runtime::RemoteStore>();
  store->get = [functions](const std::string& name) -> std::optional<std::string> {
    if (interpreter_ends()) return std::nullopt;
    const py::gil_scoped_acquire acquire;
    const py::object found = functions->first(name);
    return found.is_none() ? std::nullopt : std::optional(found.cast<std::string>());
  };
  store->put = [functions](const std::string& name, std::string_view file) {
    if (interpreter_ends()) return;
    const py::gil_scoped_acquire acquire;
    functions->second(name, py::bytes(file.data(), file.size()));
  };
  const WithoutGil scope;
  torch_bridge::set_remote_cache(std::move(store));
}

}  // namespace

void bind_cache(py::module_& module) {
  module.def("take_cache_problem", &torch_bridge::take_cache_problem, py::arg("options"));
  module.def("options_key", &driver::options_key, py::arg("options"), "The options that plans follow from, as text.");
  module.def("cache_get", get, py::arg("key"), py::arg("options"), "An entry of the cache on disk, or None.");
  module.def("cache_put", put, py::arg("key"), py::arg("bytes"), py::arg("options"), "False where nothing was stored.");
  module.def("cache_take_used", take_used, py::arg("options"), "Names of the entries that were read or written since the last call.");
  module.def("cache_read_file", read_file, py::arg("name"), py::arg("options"), "The file of an entry, or None.");
  module.def("cache_write_file", write_file, py::arg("name"), py::arg("file"), py::arg("options"),
             "Stores such a file. False where it is damaged, of another build or not of this name.");
  module.def("set_remote_cache", set_remote_cache, py::arg("get"), py::arg("put"),
             "get(name) -> bytes or None and put(name, bytes), of any thread, which do not raise; None, None for no store.");
}

}  // namespace cxxinductor::bindings
