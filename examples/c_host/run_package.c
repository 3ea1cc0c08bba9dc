/* Runs a package, or a .pt2 file, from plain C: tensors of DLPack in and out. Usage: run_package MODEL [PUBLIC_KEY]
 *
 * PUBLIC_KEY: 64 hexadecimal digits, as `cxxinductor compile --sign` prints them; machine code that this key signed is run without compiling.
 * Each input is filled with 0, 1/n, 2/n, ...; the sums of the outputs are printed, and what became of the model. */
#include <ATen/dlpack.h>
#include <cxxinductor/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 8, MOST_VALUES = 16 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, cxxinductor_last_error());
  return 1;
}

/* A dense tensor of floats on the CPU, in one block of memory. */
typedef struct {
  DLManagedTensorVersioned managed;
  int64_t sizes[MOST_DIMENSIONS];
  float data[];
} float_tensor;

static void free_tensor(DLManagedTensorVersioned* managed) { free(managed->manager_ctx); }

/* From the type of an input: "images: f32[1, 3, 8, 8] on cpu". NULL for other types, among them symbolic sizes. */
static DLManagedTensorVersioned* make_input(const char* type) {
  int64_t sizes[MOST_DIMENSIONS], count = 1;
  int rank = 0;
  const char* at = strstr(type, ": f32[");
  if (at == NULL || strstr(type, "] on cpu") == NULL) return NULL;
  for (at += strlen(": f32["); *at != ']'; ++rank) {
    char* end = NULL;
    if (rank == MOST_DIMENSIONS) return NULL;
    sizes[rank] = strtoll(at, &end, 10);
    if (end == at) return NULL;
    count *= sizes[rank];
    at = end + strspn(end, ", ");
  }
  float_tensor* tensor = calloc(1, sizeof(float_tensor) + (size_t)count * sizeof(float));
  if (tensor == NULL) return NULL;
  memcpy(tensor->sizes, sizes, sizeof sizes);
  for (int64_t i = 0; i < count; ++i) tensor->data[i] = (float)i / (float)count;
  tensor->managed.version.major = DLPACK_MAJOR_VERSION;
  tensor->managed.version.minor = DLPACK_MINOR_VERSION;
  tensor->managed.manager_ctx = tensor;
  tensor->managed.deleter = free_tensor;
  tensor->managed.dl_tensor.data = tensor->data;
  tensor->managed.dl_tensor.device.device_type = kDLCPU;
  tensor->managed.dl_tensor.ndim = rank;
  tensor->managed.dl_tensor.dtype.code = kDLFloat;
  tensor->managed.dl_tensor.dtype.bits = 32;
  tensor->managed.dl_tensor.dtype.lanes = 1;
  tensor->managed.dl_tensor.shape = tensor->sizes; /* no strides: dense */
  return &tensor->managed;
}

/* Of a dense tensor of floats. */
static double sum_of(const DLTensor* tensor) {
  const float* data = (const float*)((const char*)tensor->data + tensor->byte_offset);
  int64_t count = 1;
  double sum = 0;
  for (int i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  for (int64_t i = 0; i < count; ++i) sum += data[i];
  return sum;
}

static int run(const cxxinductor_model* model) {
  cxxinductor_value inputs[MOST_VALUES], outputs[MOST_VALUES];
  const size_t input_count = cxxinductor_input_count(model), output_count = cxxinductor_output_count(model);
  if (input_count > MOST_VALUES || output_count > MOST_VALUES) {
    fprintf(stderr, "expected at most %d inputs and outputs\n", MOST_VALUES);
    return 1;
  }
  for (size_t i = 0; i < input_count; ++i) {
    const char* type = cxxinductor_input_type(model, i);
    printf("input %s\n", type);
    inputs[i].kind = CXXINDUCTOR_TENSOR;
    inputs[i].as.tensor = make_input(type);
    if (inputs[i].as.tensor == NULL) {
      fprintf(stderr, "expected dense f32 tensors of fixed sizes on the CPU\n");
      while (i-- > 0) cxxinductor_release(&inputs[i]);
      return 1;
    }
  }
  /* The inputs are the library's from here on. */
  if (cxxinductor_run(model, inputs, input_count, outputs, output_count) != CXXINDUCTOR_OK) return fail("run");
  for (size_t i = 0; i < output_count; ++i) {
    const int is_float = outputs[i].kind == CXXINDUCTOR_TENSOR && outputs[i].as.tensor->dl_tensor.dtype.code == kDLFloat &&
                         outputs[i].as.tensor->dl_tensor.dtype.bits == 32 && outputs[i].as.tensor->dl_tensor.device.device_type == kDLCPU;
    printf("output %s", cxxinductor_output_type(model, i));
    if (is_float) printf(": sum %.6g", sum_of(&outputs[i].as.tensor->dl_tensor));
    printf("\n");
    cxxinductor_release(&outputs[i]);
  }
  return 0;
}

int main(int argc, char** argv) {
  cxxinductor_options* options = NULL;
  cxxinductor_model* model = NULL;
  char* text = NULL;
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: run_package MODEL [PUBLIC_KEY]\n");
    return 2;
  }
  if (cxxinductor_create_options_from_environment(&options) != CXXINDUCTOR_OK) return fail("options");
  if (argc == 3 && cxxinductor_set_option(options, "trusted_keys", argv[2]) != CXXINDUCTOR_OK) return fail("trusted_keys");
  if (cxxinductor_load(argv[1], options, &model) != CXXINDUCTOR_OK) return fail(argv[1]);
  cxxinductor_free_options(options);
  int status = run(model);
  if (status == 0 && cxxinductor_explain(model, &text) == CXXINDUCTOR_OK) printf("%s\n", text);
  cxxinductor_free_text(text);
  cxxinductor_free_model(model);
  return status;
}
