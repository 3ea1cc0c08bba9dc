/* The C API in a host that is C99: every function, what passes to whom, and every kind of error. Usage: c_host FOLDER_OF_ARCHIVES PACKAGE_TO_WRITE
 *
 * tests/data/pt2/mlp.pt2: down(relu(up(x))) with x: f32[3, 2], weights 0, 1, 2, .. */
#include <ATen/dlpack.h>
#include <cxxinductor/c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      ++failures;                                                                                   \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, cxxinductor_last_error()); \
    }                                                                                               \
  } while (0)
#define CHECK_FAILS(call, status, part)                         \
  do {                                                          \
    CHECK((call) == (status));                                  \
    CHECK(strstr(cxxinductor_last_error(), (part)) != NULL);    \
  } while (0)

/* A tensor of floats of this program's, which counts the calls of its deleter. */
typedef struct {
  DLManagedTensorVersioned managed;
  int64_t sizes[2], strides[2];
  float data[13];
} host_tensor;
static int deleted = 0;

static void delete_tensor(DLManagedTensorVersioned* managed) {
  ++deleted;
  free(managed->manager_ctx);
}

static host_tensor* make_tensor(int64_t rows, int64_t columns) {
  host_tensor* tensor = (host_tensor*)calloc(1, sizeof(host_tensor));
  tensor->managed.version.major = DLPACK_MAJOR_VERSION;
  tensor->managed.version.minor = DLPACK_MINOR_VERSION;
  tensor->managed.manager_ctx = tensor;
  tensor->managed.deleter = delete_tensor;
  tensor->managed.dl_tensor.data = tensor->data;
  tensor->managed.dl_tensor.byte_offset = sizeof(float); /* the elements begin with data[1] */
  tensor->managed.dl_tensor.device.device_type = kDLCPU;
  tensor->managed.dl_tensor.ndim = 2;
  tensor->managed.dl_tensor.dtype.code = kDLFloat;
  tensor->managed.dl_tensor.dtype.bits = 32;
  tensor->managed.dl_tensor.dtype.lanes = 1;
  tensor->managed.dl_tensor.shape = tensor->sizes;
  tensor->managed.dl_tensor.strides = tensor->strides;
  tensor->sizes[0] = rows;
  tensor->sizes[1] = tensor->strides[0] = columns;
  tensor->strides[1] = 1;
  for (int i = 0; i < 13; ++i) tensor->data[i] = (float)i;
  return tensor;
}

static cxxinductor_value tensor_value(host_tensor* tensor) {
  cxxinductor_value value = {CXXINDUCTOR_TENSOR, {NULL}};
  value.as.tensor = tensor ? &tensor->managed : NULL;
  return value;
}

static const float* elements(const DLManagedTensorVersioned* tensor) {
  return (const float*)((const char*)tensor->dl_tensor.data + tensor->dl_tensor.byte_offset);
}

/* down(relu(up(x))) of a row of x, where up.weight is {0..7}, up.bias {0..3}, down.weight {0..7}. */
static float expected_output(const float* x, int column) {
  float sum = 0;
  for (int hidden = 0; hidden < 4; ++hidden) {
    const float up = x[0] * (float)(2 * hidden) + x[1] * (float)(2 * hidden + 1) + (float)hidden;
    sum += (up > 0 ? up : 0) * (float)(4 * column + hidden);
  }
  return sum;
}

static void test_run(const cxxinductor_model* model) {
  CHECK(cxxinductor_input_count(model) == 1 && cxxinductor_output_count(model) == 1 && cxxinductor_weight_count(model) == 3);
  CHECK(strcmp(cxxinductor_input_type(model, 0), "x: f32[3, 2] on cpu") == 0);
  CHECK(strcmp(cxxinductor_output_type(model, 0), "f32[3, 2] on cpu") == 0);
  CHECK(strcmp(cxxinductor_weight_name(model, 2), "up.weight") == 0);
  CHECK(cxxinductor_input_type(model, 1) == NULL && cxxinductor_output_type(model, 1) == NULL && cxxinductor_weight_name(model, 3) == NULL);

  cxxinductor_value input = tensor_value(make_tensor(3, 2)), output;
  deleted = 0;
  CHECK(cxxinductor_run(model, &input, 1, &output, 1) == CXXINDUCTOR_OK);
  CHECK(deleted == 1);
  CHECK(output.kind == CXXINDUCTOR_TENSOR && output.as.tensor->dl_tensor.ndim == 2 && output.as.tensor->dl_tensor.shape[0] == 3);
  for (int row = 0; row < 3; ++row) {
    const float x[2] = {(float)(2 * row + 1), (float)(2 * row + 2)};
    for (int column = 0; column < 2; ++column)
      CHECK(fabsf(elements(output.as.tensor)[2 * row + column] - expected_output(x, column)) < 1e-3f);
  }
  cxxinductor_release(&output);
  CHECK(output.kind == CXXINDUCTOR_NONE);
  cxxinductor_release(&output);
  cxxinductor_release(NULL);
}

static void test_weights(const cxxinductor_model* model) {
  DLManagedTensorVersioned* weight = NULL;
  CHECK(cxxinductor_weight(model, "down.weight", &weight) == CXXINDUCTOR_OK);
  CHECK(weight->dl_tensor.shape[0] == 2 && weight->dl_tensor.shape[1] == 4 && elements(weight)[7] == 7);
  ((float*)weight->dl_tensor.data)[0] = 100; /* the model's own memory */
  weight->deleter(weight);
  CHECK(cxxinductor_weight(model, "down.weight", &weight) == CXXINDUCTOR_OK && elements(weight)[0] == 100);
  ((float*)weight->dl_tensor.data)[0] = 0;
  weight->deleter(weight);
  CHECK_FAILS(cxxinductor_weight(model, "down", &weight), CXXINDUCTOR_USER_ERROR, "it has: down.weight");
}

/* Whatever fails, each tensor is deleted once. */
static void test_wrong_inputs(const cxxinductor_model* model) {
  cxxinductor_value output, inputs[2];
  deleted = 0;
  inputs[0] = tensor_value(make_tensor(2, 2));
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "(x): expected sizes [3, 2], found [2, 2]");
  CHECK(deleted == 1);
  inputs[0] = tensor_value(make_tensor(3, 2));
  inputs[1] = tensor_value(make_tensor(3, 2));
  CHECK_FAILS(cxxinductor_run(model, inputs, 2, &output, 1), CXXINDUCTOR_USER_ERROR, "expected 1 inputs (x: f32[3, 2] on cpu), found 2");
  CHECK(deleted == 3);
  inputs[0] = tensor_value(make_tensor(3, 2));
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 0), CXXINDUCTOR_USER_ERROR, "expected room for 1 outputs, found 0");
  inputs[0] = tensor_value(make_tensor(3, 2));
  CHECK_FAILS(cxxinductor_run(NULL, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "model: expected a pointer, found null");
  CHECK(deleted == 5);
  host_tensor* tensor = make_tensor(3, 2);
  tensor->managed.version.major = 99;
  inputs[0] = tensor_value(tensor);
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "input 0: expected a tensor of DLPack 1, found one of version 99");
  tensor = make_tensor(3, 2);
  tensor->managed.dl_tensor.dtype.bits = 7;
  inputs[0] = tensor_value(tensor);
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "input 0: ");
  CHECK(deleted == 7);
  inputs[0] = tensor_value(NULL);
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "input 0: expected a tensor, found null");
  CHECK_FAILS(cxxinductor_run(model, NULL, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "inputs: expected a pointer");
  inputs[0].kind = CXXINDUCTOR_INTEGER;
  inputs[0].as.integer = 3;
  CHECK_FAILS(cxxinductor_run(model, inputs, 1, &output, 1), CXXINDUCTOR_USER_ERROR, "input 'x': expected a tensor, found Int");
}

/* Constants among inputs and outputs: a number, a text, a truth, none. */
static void test_constants(const char* path) {
  cxxinductor_model* model = NULL;
  CHECK(cxxinductor_load(path, NULL, &model) == CXXINDUCTOR_OK);
  if (model == NULL) return;
  CHECK(cxxinductor_input_count(model) == 6 && cxxinductor_output_count(model) == 6);
  CHECK(strcmp(cxxinductor_output_type(model, 2), "bf16[4, 3] on cpu") == 0 && strcmp(cxxinductor_output_type(model, 3), "3") == 0);

  static int64_t rows[2] = {1, 2}, two = 2; /* without strides and without a deleter: dense, and not the library's to delete */
  static DLManagedTensorVersioned index;
  index.version.major = DLPACK_MAJOR_VERSION;
  index.dl_tensor.data = rows;
  index.dl_tensor.device.device_type = kDLCPU;
  index.dl_tensor.ndim = 1;
  index.dl_tensor.dtype.code = kDLInt;
  index.dl_tensor.dtype.bits = 64;
  index.dl_tensor.dtype.lanes = 1;
  index.dl_tensor.shape = &two;

  cxxinductor_value inputs[6], outputs[6];
  inputs[0] = tensor_value(make_tensor(4, 3));
  inputs[1].kind = CXXINDUCTOR_TENSOR;
  inputs[1].as.tensor = &index;
  inputs[2].kind = CXXINDUCTOR_DOUBLE;
  inputs[2].as.real = 2;
  inputs[3].kind = CXXINDUCTOR_TEXT;
  inputs[3].as.text = "half";
  inputs[4].kind = CXXINDUCTOR_BOOLEAN;
  inputs[4].as.boolean = 0;
  inputs[5].kind = CXXINDUCTOR_NONE;
  deleted = 0;
  CHECK(cxxinductor_run(model, inputs, 6, outputs, 6) == CXXINDUCTOR_OK);
  CHECK(outputs[0].kind == CXXINDUCTOR_TENSOR && elements(outputs[0].as.tensor)[0] == 2);
  CHECK(outputs[2].kind == CXXINDUCTOR_TENSOR && outputs[2].as.tensor->dl_tensor.dtype.code == kDLBfloat);
  CHECK(outputs[3].kind == CXXINDUCTOR_INTEGER && outputs[3].as.integer == 3);
  CHECK(outputs[4].kind == CXXINDUCTOR_NONE);
  CHECK(outputs[5].kind == CXXINDUCTOR_TEXT && strcmp(outputs[5].as.text, "text") == 0);
  for (int i = 0; i < 6; ++i) cxxinductor_release(&outputs[i]);
  CHECK(deleted == 1);

  inputs[0] = tensor_value(make_tensor(4, 3));
  inputs[3].as.text = "double";
  CHECK_FAILS(cxxinductor_run(model, inputs, 6, outputs, 6), CXXINDUCTOR_USER_ERROR, "input 'mode': expected half");
  inputs[0] = tensor_value(make_tensor(4, 3));
  inputs[3].as.text = NULL;
  CHECK_FAILS(cxxinductor_run(model, inputs, 6, outputs, 6), CXXINDUCTOR_USER_ERROR, "a text among the inputs: expected a pointer");
  CHECK(deleted == 3);
  cxxinductor_free_model(model);
}

static void test_options_and_errors(const char* path) {
  cxxinductor_options* options = NULL;
  cxxinductor_model* model = NULL;
  CHECK(cxxinductor_create_options(&options) == CXXINDUCTOR_OK);
  CHECK_FAILS(cxxinductor_set_option(options, "tear", "aten"), CXXINDUCTOR_USER_ERROR, "did you mean 'tier'");
  CHECK_FAILS(cxxinductor_set_option(options, "tier", "fast"), CXXINDUCTOR_USER_ERROR, "'tier'");
  CHECK(cxxinductor_set_option(options, "tier", "aten") == CXXINDUCTOR_OK);
  CHECK(cxxinductor_load(path, options, &model) == CXXINDUCTOR_OK);
  char* text = NULL;
  CHECK(cxxinductor_explain(model, &text) == CXXINDUCTOR_OK && strstr(text, "tier=aten") != NULL);
  cxxinductor_free_text(text);
  cxxinductor_free_text(NULL);
  test_run(model);
  cxxinductor_free_model(model);
  cxxinductor_free_options(options);

  model = NULL;
  CHECK_FAILS(cxxinductor_load("/nowhere/model.pt2", NULL, &model), CXXINDUCTOR_USER_ERROR, "/nowhere/model.pt2: No such file");
  CHECK_FAILS(cxxinductor_load_bytes("no archive", 10, NULL, &model), CXXINDUCTOR_USER_ERROR, "zip");
  CHECK_FAILS(cxxinductor_load(NULL, NULL, &model), CXXINDUCTOR_USER_ERROR, "path: expected a pointer, found null");
  CHECK_FAILS(cxxinductor_load(path, NULL, NULL), CXXINDUCTOR_USER_ERROR, "model: expected a pointer, found null");
  CHECK(model == NULL);
  cxxinductor_free_model(NULL);
  cxxinductor_free_options(NULL);
  CHECK(cxxinductor_create_options_from_environment(&options) == CXXINDUCTOR_OK);
  cxxinductor_free_options(options);
}

static void test_loads_as_package(const char* path) {
  cxxinductor_options* options = NULL;
  cxxinductor_model* model = NULL;
  char* text = NULL;
  CHECK(cxxinductor_create_options(&options) == CXXINDUCTOR_OK);
  CHECK(cxxinductor_set_option(options, "trust", "true") == CXXINDUCTOR_OK);
  CHECK(cxxinductor_load(path, options, &model) == CXXINDUCTOR_OK);
  CHECK(cxxinductor_explain(model, &text) == CXXINDUCTOR_OK && strstr(text, "read plan") != NULL);
  cxxinductor_free_text(text);
  test_run(model);
  cxxinductor_free_model(model);
  cxxinductor_free_options(options);
}

static void test_packages(const cxxinductor_model* model, const char* file, const char* path) {
  const char* archs[] = {"x86-64", "x86-64-v2"};
  const char* wrong[] = {"arm64"};
  cxxinductor_package_options options = {0};
  CHECK(cxxinductor_package(model, path, NULL) == CXXINDUCTOR_OK);
  test_loads_as_package(path);
  options.archs = archs;
  options.arch_count = 2;
  CHECK(cxxinductor_package_file(file, path, &options, NULL) == CXXINDUCTOR_OK);
  test_loads_as_package(path);

  FILE* read = fopen(file, "rb");
  static char bytes[1 << 20];
  const size_t size = read != NULL ? fread(bytes, 1, sizeof bytes, read) : 0;
  if (read != NULL) fclose(read);
  options.weights_beside = 1;
  CHECK(cxxinductor_package_bytes(bytes, size, path, &options, NULL) == CXXINDUCTOR_OK);
  test_loads_as_package(path);

  char beside[4096];
  snprintf(beside, sizeof beside, "%s.weights", path);
  CHECK(remove(beside) == 0 && remove(path) == 0);
  options.archs = wrong;
  options.arch_count = 1;
  CHECK_FAILS(cxxinductor_package_file(file, path, &options, NULL), CXXINDUCTOR_USER_ERROR, "found 'arm64'");
  options.archs = NULL;
  CHECK_FAILS(cxxinductor_package_file(file, path, &options, NULL), CXXINDUCTOR_USER_ERROR, "package_options.archs: expected a pointer, found null");
  options.arch_count = 0;
  options.signing_key = "/nowhere/key.pem";
  CHECK_FAILS(cxxinductor_package(model, path, &options), CXXINDUCTOR_USER_ERROR, "/nowhere/key.pem");
  CHECK_FAILS(cxxinductor_package(model, "/nowhere/model.cxxi", NULL), CXXINDUCTOR_USER_ERROR, "/nowhere/model.cxxi");
  CHECK_FAILS(cxxinductor_package(NULL, path, NULL), CXXINDUCTOR_USER_ERROR, "model: expected a pointer, found null");
  CHECK_FAILS(cxxinductor_package_file(NULL, path, NULL, NULL), CXXINDUCTOR_USER_ERROR, "file: expected a pointer, found null");
  CHECK_FAILS(cxxinductor_package_bytes("no archive", 10, path, NULL, NULL), CXXINDUCTOR_USER_ERROR, "zip");
  CHECK(fopen(path, "rb") == NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char mlp[4096], nested[4096];
  snprintf(mlp, sizeof mlp, "%s/mlp.pt2", argv[1]);
  snprintf(nested, sizeof nested, "%s/nested.pt2", argv[1]);
  CHECK(strcmp(cxxinductor_last_error(), "") == 0);
  CHECK(strchr(cxxinductor_version(), '.') != NULL);

  cxxinductor_model* model = NULL;
  CHECK(cxxinductor_load(mlp, NULL, &model) == CXXINDUCTOR_OK);
  if (model == NULL) return 1;
  test_run(model);
  test_weights(model);
  test_wrong_inputs(model);
  test_packages(model, mlp, argv[2]);

  /* Outputs outlive the model. */
  cxxinductor_value input = tensor_value(make_tensor(3, 2)), output;
  CHECK(cxxinductor_run(model, &input, 1, &output, 1) == CXXINDUCTOR_OK);
  cxxinductor_free_model(model);
  CHECK(isfinite(elements(output.as.tensor)[0]));
  cxxinductor_release(&output);

  test_constants(nested);
  test_options_and_errors(mlp);
  if (failures == 0) printf("the C API works\n");
  return failures == 0 ? 0 : 1;
}
