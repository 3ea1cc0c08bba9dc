// The C API over the C++ API: handles, values as DLPack tensors, exceptions as status codes.
#include <ATen/DLConvertor.h>
#include <c10/util/Exception.h>
#include <cxxinductor/c.h>
#include <cxxinductor/package.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "support/options.h"

struct cxxinductor_options {
  cxxinductor::Options options;
};

struct cxxinductor_model {
  cxxinductor::Model model;
  std::vector<std::string> input_types, output_types, weight_names;
};

namespace cxxinductor::api {
namespace {

// Of the thread. Empty where not even the message could be stored.
thread_local std::string last_error;

cxxinductor_status fail(cxxinductor_status status, const char* message) {
  try {
    last_error = message;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

cxxinductor_status status_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::User:
      return CXXINDUCTOR_USER_ERROR;
    case Error::Kind::Unsupported:
      return CXXINDUCTOR_UNSUPPORTED;
    case Error::Kind::Assertion:
      return CXXINDUCTOR_FAILED_ASSERTION;
    case Error::Kind::Internal:
      return CXXINDUCTOR_INTERNAL_ERROR;
  }
  return CXXINDUCTOR_INTERNAL_ERROR;
}

// What every function that may fail does around its work.
template <class Work>
cxxinductor_status guarded(const Work& work) noexcept {
  try {
    work();
    return CXXINDUCTOR_OK;
  } catch (const Error& error) {
    return fail(status_of(error.kind()), error.what());
  } catch (const c10::Error& error) {
    return fail(CXXINDUCTOR_PYTORCH_ERROR, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(CXXINDUCTOR_PYTORCH_ERROR, error.what());
  } catch (...) {
    return fail(CXXINDUCTOR_PYTORCH_ERROR, "an exception that is not a std::exception");
  }
}

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw_user_error("{}: expected a pointer, found null", name);
}

// A tensor of the caller's, whose deleter is called once nobody holds it.
using Given = std::shared_ptr<DLManagedTensorVersioned>;

Given take(DLManagedTensorVersioned* tensor) {
  return {tensor, [](DLManagedTensorVersioned* taken) {
            if (taken != nullptr && taken->deleter != nullptr) taken->deleter(taken);
          }};
}

at::Tensor to_tensor(size_t index, Given given) {
  if (!given) throw_user_error("input {}: expected a tensor, found null", index);
  if (given->version.major != DLPACK_MAJOR_VERSION)
    throw_user_error("input {}: expected a tensor of DLPack {}, found one of version {}", index, DLPACK_MAJOR_VERSION, given->version.major);
  // PyTorch does not look at byte_offset.
  DLManagedTensorVersioned view = *given;
  view.dl_tensor.data = static_cast<char*>(view.dl_tensor.data) + view.dl_tensor.byte_offset;
  view.dl_tensor.byte_offset = 0;
  try {
    return at::fromDLPackVersioned(&view, [given](void*) {});
  } catch (const c10::Error& error) {
    throw_user_error("input {}: {}", index, error.what_without_backtrace());
  }
}

c10::IValue to_ivalue(size_t index, const cxxinductor_value& value, Given given) {
  switch (value.kind) {
    case CXXINDUCTOR_NONE:
      return {};
    case CXXINDUCTOR_TENSOR:
      return to_tensor(index, std::move(given));
    case CXXINDUCTOR_INTEGER:
      return value.as.integer;
    case CXXINDUCTOR_DOUBLE:
      return value.as.real;
    case CXXINDUCTOR_BOOLEAN:
      return value.as.boolean != 0;
    case CXXINDUCTOR_TEXT:
      require(value.as.text, "a text among the inputs");
      return std::string(value.as.text);
  }
  throw_user_error("input {}: {} is not a cxxinductor_kind", index, static_cast<int>(value.kind));
}

// Conjugate and negative bits are PyTorch's own: others read the memory as it is.
DLManagedTensorVersioned* to_dlpack(const at::Tensor& tensor) { return at::toDLPackVersioned(tensor.resolve_conj().resolve_neg()); }

cxxinductor_value to_value(const c10::IValue& output) {
  cxxinductor_value value{CXXINDUCTOR_NONE, {}};
  if (output.isTensor()) {
    value.as.tensor = to_dlpack(output.toTensor());
    value.kind = CXXINDUCTOR_TENSOR;
  } else if (output.isBool()) {
    value.kind = CXXINDUCTOR_BOOLEAN;
    value.as.boolean = output.toBool();
  } else if (output.isInt()) {
    value.kind = CXXINDUCTOR_INTEGER;
    value.as.integer = output.toInt();
  } else if (output.isDouble()) {
    value.kind = CXXINDUCTOR_DOUBLE;
    value.as.real = output.toDouble();
  } else if (output.isString()) {
    value.kind = CXXINDUCTOR_TEXT;
    value.as.text = output.toStringRef().c_str();  // the model's own constant
  } else {
    CXXI_CHECK(output.isNone(), "a result of type {}", output.tagKind());
  }
  return value;
}

// Outputs as they are made: released unless all of them were.
struct PartialOutputs {
  cxxinductor_value* values;
  size_t made = 0;
  bool complete = false;
  ~PartialOutputs() {
    for (size_t i = 0; i < made && !complete; ++i) cxxinductor_release(&values[i]);
  }
};

void run(const cxxinductor_model* model, const cxxinductor_value* inputs, size_t input_count, cxxinductor_value* outputs, size_t output_count) {
  std::vector<Given> tensors(inputs ? input_count : 0);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (inputs[i].kind == CXXINDUCTOR_TENSOR) tensors[i] = take(inputs[i].as.tensor);
  require(model, "model");
  if (input_count > 0) require(inputs, "inputs");
  if (output_count != model->output_types.size()) throw_user_error("expected room for {} outputs, found {}", model->output_types.size(), output_count);
  if (output_count > 0) require(outputs, "outputs");
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < input_count; ++i) values.push_back(to_ivalue(i, inputs[i], std::move(tensors[i])));
  const std::vector<c10::IValue> results = model->model.run(std::move(values));
  PartialOutputs made{outputs};
  for (; made.made < results.size(); ++made.made) outputs[made.made] = to_value(results[made.made]);
  made.complete = true;
}

cxxinductor_model* make_handle(Model model) { return new cxxinductor_model{model, model.input_types(), model.output_types(), model.weight_names()}; }

Options given_options(const cxxinductor_options* options) { return options ? options->options : Options(); }

PackageOptions given_options(const cxxinductor_package_options* given) {
  PackageOptions options;
  if (given == nullptr) return options;
  if (given->arch_count > 0) require(given->archs, "package_options.archs");
  for (size_t i = 0; i < given->arch_count; ++i) {
    require(given->archs[i], "an architecture in package_options.archs");
    options.archs.emplace_back(given->archs[i]);
  }
  options.weights_beside = given->weights_beside != 0;
  if (given->signing_key != nullptr) options.signing_key = given->signing_key;
  return options;
}

const char* text_at(const std::vector<std::string>& texts, size_t index) { return index < texts.size() ? texts[index].c_str() : nullptr; }

}  // namespace
}  // namespace cxxinductor::api

using namespace cxxinductor::api;

const char* cxxinductor_last_error(void) { return last_error.c_str(); }
const char* cxxinductor_version(void) { return cxxinductor::version(); }

cxxinductor_status cxxinductor_create_options(cxxinductor_options** options) {
  return guarded([&] {
    require(options, "options");
    *options = new cxxinductor_options;
  });
}

cxxinductor_status cxxinductor_create_options_from_environment(cxxinductor_options** options) {
  return guarded([&] {
    require(options, "options");
    *options = new cxxinductor_options{cxxinductor::options_from_environment()};
  });
}

cxxinductor_status cxxinductor_set_option(cxxinductor_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options, "options");
    require(name, "name");
    require(value, "value");
    cxxinductor::Options changed = options->options;
    cxxinductor::set_option(changed, name, value);
    cxxinductor::check_options(changed);
    options->options = std::move(changed);
  });
}

void cxxinductor_free_options(cxxinductor_options* options) { delete options; }

cxxinductor_status cxxinductor_load(const char* path, const cxxinductor_options* options, cxxinductor_model** model) {
  return guarded([&] {
    require(path, "path");
    require(model, "model");
    *model = make_handle(cxxinductor::load(path, given_options(options)));
  });
}

cxxinductor_status cxxinductor_load_bytes(const void* bytes, size_t size, const cxxinductor_options* options, cxxinductor_model** model) {
  return guarded([&] {
    require(bytes, "bytes");
    require(model, "model");
    *model = make_handle(cxxinductor::load(bytes, size, given_options(options)));
  });
}

cxxinductor_status cxxinductor_package(const cxxinductor_model* model, const char* path, const cxxinductor_package_options* package_options) {
  return guarded([&] {
    require(model, "model");
    require(path, "path");
    cxxinductor::package(model->model, path, given_options(package_options));
  });
}

cxxinductor_status cxxinductor_package_file(const char* file, const char* path, const cxxinductor_package_options* package_options,
                                            const cxxinductor_options* options) {
  return guarded([&] {
    require(file, "file");
    require(path, "path");
    cxxinductor::package(std::string(file), path, given_options(package_options), given_options(options));
  });
}

cxxinductor_status cxxinductor_package_bytes(const void* bytes, size_t size, const char* path, const cxxinductor_package_options* package_options,
                                             const cxxinductor_options* options) {
  return guarded([&] {
    require(bytes, "bytes");
    require(path, "path");
    cxxinductor::package(bytes, size, path, given_options(package_options), given_options(options));
  });
}

void cxxinductor_free_model(cxxinductor_model* model) { delete model; }

size_t cxxinductor_input_count(const cxxinductor_model* model) { return model ? model->input_types.size() : 0; }
const char* cxxinductor_input_type(const cxxinductor_model* model, size_t index) { return model ? text_at(model->input_types, index) : nullptr; }
size_t cxxinductor_output_count(const cxxinductor_model* model) { return model ? model->output_types.size() : 0; }
const char* cxxinductor_output_type(const cxxinductor_model* model, size_t index) { return model ? text_at(model->output_types, index) : nullptr; }
size_t cxxinductor_weight_count(const cxxinductor_model* model) { return model ? model->weight_names.size() : 0; }
const char* cxxinductor_weight_name(const cxxinductor_model* model, size_t index) { return model ? text_at(model->weight_names, index) : nullptr; }

cxxinductor_status cxxinductor_run(const cxxinductor_model* model, const cxxinductor_value* inputs, size_t input_count, cxxinductor_value* outputs,
                                   size_t output_count) {
  return guarded([&] { run(model, inputs, input_count, outputs, output_count); });
}

void cxxinductor_release(cxxinductor_value* value) {
  if (value == nullptr) return;
  if (value->kind == CXXINDUCTOR_TENSOR) (void)take(value->as.tensor);
  *value = {CXXINDUCTOR_NONE, {}};
}

cxxinductor_status cxxinductor_weight(const cxxinductor_model* model, const char* name, DLManagedTensorVersioned** tensor) {
  return guarded([&] {
    require(model, "model");
    require(name, "name");
    require(tensor, "tensor");
    *tensor = to_dlpack(model->model.weight(name));
  });
}

cxxinductor_status cxxinductor_explain(const cxxinductor_model* model, char** text) {
  return guarded([&] {
    require(model, "model");
    require(text, "text");
    char* copy = strdup(model->model.explain().c_str());
    if (copy == nullptr) throw std::bad_alloc();
    *text = copy;
  });
}

void cxxinductor_free_text(char* text) { std::free(text); }
