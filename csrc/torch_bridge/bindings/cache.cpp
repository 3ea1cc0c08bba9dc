#include "torch_bridge/bindings/cache.h"

#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "driver/plan_cache.h"
#include "torch_bridge/bindings/remote_requests.h"
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

std::shared_ptr<RemoteRequests> open_remote_cache(int64_t patience) {
  auto requests = std::make_shared<RemoteRequests>(std::chrono::milliseconds(patience));
  auto store = std::make_shared<runtime::RemoteStore>();
  store->get = [requests](const std::string& name) { return requests->ask(name, std::nullopt); };
  store->put = [requests](const std::string& name, std::string_view file) { requests->ask(name, std::string(file)); };
  const WithoutGil scope;
  torch_bridge::set_remote_cache(std::move(store));
  return requests;
}

void close_remote_cache(RemoteRequests& requests) {
  const WithoutGil scope;
  torch_bridge::set_remote_cache(nullptr);
  requests.close();
}

// (number, name, None or the file to keep), or None at the end.
py::object next_request(RemoteRequests& requests) {
  std::optional<RemoteRequests::Request> request;
  {
    const WithoutGil scope;
    request = requests.next();
  }
  if (!request) return py::none();
  return py::make_tuple(request->number, request->name, request->file ? py::object(py::bytes(*request->file)) : py::none());
}

void answer(RemoteRequests& requests, uint64_t number, const py::object& file) {
  requests.answer(number, file.is_none() ? std::nullopt : std::optional(file.cast<std::string>()));
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
  py::class_<RemoteRequests, std::shared_ptr<RemoteRequests>>(module, "RemoteRequests", "What compiles ask of a remote store.")
      .def("next", next_request, "Waits for a request: (number, name, None or the file to keep); None at the end.")
      .def("answer", answer, py::arg("number"), py::arg("file"), "Ends the request of this number; file: bytes or None.")
      .def("close", close_remote_cache, "Ends the requests, and those who wait for one.");
  module.def("open_remote_cache", open_remote_cache, py::arg("patience"),
             "Sends compiles' requests to the object returned, which threads have to serve. patience: milliseconds that an answer may take.");
}

}  // namespace cxxinductor::bindings
