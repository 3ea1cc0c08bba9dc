/* Compiles exported PyTorch models and runs them: the C API of cxxinductor, for hosts that are not C++. Needs C99.
 *
 *   cxxinductor_model* model = NULL;
 *   if (cxxinductor_load("model.pt2", NULL, &model) != CXXINDUCTOR_OK) fprintf(stderr, "%s\n", cxxinductor_last_error());
 *   cxxinductor_value input = {CXXINDUCTOR_TENSOR, {.tensor = my_dlpack_tensor}}, output;
 *   cxxinductor_run(model, &input, 1, &output, 1);
 *   ... output.as.tensor->dl_tensor ...
 *   cxxinductor_release(&output);
 *   cxxinductor_free_model(model);
 *
 * Every function may be called from any thread, and a model may be run from several at once; cxxinductor.h says what holds for models
 * that update buffers. Options are filled by one thread at a time. Tensors are those of DLPack 1 (dlpack.h, which PyTorch installs as
 * ATen/dlpack.h). Nothing is thrown through these functions. A pointer that must not be null is reported as CXXINDUCTOR_USER_ERROR. */
#ifndef CXXINDUCTOR_C_H
#define CXXINDUCTOR_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned; /* dlpack.h */

typedef struct cxxinductor_model cxxinductor_model;
typedef struct cxxinductor_options cxxinductor_options;

typedef enum cxxinductor_status {
  CXXINDUCTOR_OK = 0,
  CXXINDUCTOR_USER_ERROR = 1,       /* what was passed is wrong: expected, found, what to do */
  CXXINDUCTOR_UNSUPPORTED = 2,      /* the model has what this version cannot read or compile */
  CXXINDUCTOR_FAILED_ASSERTION = 3, /* what the model asserts does not hold for the data of this call */
  CXXINDUCTOR_INTERNAL_ERROR = 4,   /* a bug of this library */
  CXXINDUCTOR_PYTORCH_ERROR = 5,    /* an exception of PyTorch's, of a custom op's, or of the C++ library's (out of memory) */
} cxxinductor_status;

/* The message of the calling thread's last call that failed, until the next one that fails; "" before. Never null. */
const char* cxxinductor_last_error(void);
const char* cxxinductor_version(void); /* "0.1.0" */

/* Options by name and text, as docs/options.md lists them: ("tier", "aten"). */
cxxinductor_status cxxinductor_create_options(cxxinductor_options** options);
/* Those of the environment variables CXXINDUCTOR_*. */
cxxinductor_status cxxinductor_create_options_from_environment(cxxinductor_options** options);
cxxinductor_status cxxinductor_set_option(cxxinductor_options* options, const char* name, const char* value);
void cxxinductor_free_options(cxxinductor_options* options); /* null: nothing */

/* Reads and compiles a .pt2 file; options may be null: the defaults. */
cxxinductor_status cxxinductor_load(const char* path, const cxxinductor_options* options, cxxinductor_model** model);
/* The same from memory, which is copied. */
cxxinductor_status cxxinductor_load_bytes(const void* bytes, size_t size, const cxxinductor_options* options, cxxinductor_model** model);
/* What cxxinductor_package is asked for, as cxxinductor/package.h describes it. Begin with {0}, which are the defaults. */
typedef struct cxxinductor_package_options {
  const char* const* archs; /* "sm_80", "x86-64-v3": of a kind that is not listed, that of this machine */
  size_t arch_count;
  int weights_beside;      /* into a file of their own, path + ".weights" */
  const char* signing_key; /* a file: an Ed25519 private key as PEM; null: the package is not signed */
} cxxinductor_package_options;

/* Writes a package, which cxxinductor_load takes in place of a .pt2 file and runs without compiling where it is trusted. package_options may be
 * null: the defaults. */
cxxinductor_status cxxinductor_package(const cxxinductor_model* model, const char* path, const cxxinductor_package_options* package_options);
/* Of a .pt2 file, or a package anew, without running or loading it: a model on a GPU needs none. options may be null: the defaults. */
cxxinductor_status cxxinductor_package_file(const char* file, const char* path, const cxxinductor_package_options* package_options,
                                            const cxxinductor_options* options);
/* The same from memory. */
cxxinductor_status cxxinductor_package_bytes(const void* bytes, size_t size, const char* path, const cxxinductor_package_options* package_options,
                                             const cxxinductor_options* options);
/* Null: nothing. Tensors that the model returned stay valid. No call of the model may be running. */
void cxxinductor_free_model(cxxinductor_model* model);

/* "images: f32[b, 3, 224, 224] on cpu where 1 <= b <= 64"; null beyond the last. They live as long as the model. */
size_t cxxinductor_input_count(const cxxinductor_model* model);
const char* cxxinductor_input_type(const cxxinductor_model* model, size_t index);
size_t cxxinductor_output_count(const cxxinductor_model* model);
const char* cxxinductor_output_type(const cxxinductor_model* model, size_t index);
size_t cxxinductor_weight_count(const cxxinductor_model* model);
const char* cxxinductor_weight_name(const cxxinductor_model* model, size_t index);

typedef enum cxxinductor_kind {
  CXXINDUCTOR_NONE = 0,
  CXXINDUCTOR_TENSOR = 1,
  CXXINDUCTOR_INTEGER = 2,
  CXXINDUCTOR_DOUBLE = 3,
  CXXINDUCTOR_BOOLEAN = 4,
  CXXINDUCTOR_TEXT = 5,
} cxxinductor_kind;

typedef struct cxxinductor_value {
  cxxinductor_kind kind;
  union {
    struct DLManagedTensorVersioned* tensor;
    int64_t integer;
    double real;
    int boolean;
    const char* text; /* of an output: lives as long as the model */
  } as;
} cxxinductor_value;

/* Runs the model. On the GPU the work is queued on the stream that is current in PyTorch for the calling thread: the default stream, where
 * nobody changed it.
 *
 * inputs: as many as cxxinductor_input_count says. Their tensors pass to the library, whatever the call returns: it calls their deleters,
 * where they are not null, once it needs them no more, perhaps after the call: an output may share an input's memory. What was given must not be
 * given again. outputs: room for as many as cxxinductor_output_count says. They are the caller's, and filled if the call succeeds. */
cxxinductor_status cxxinductor_run(const cxxinductor_model* model, const cxxinductor_value* inputs, size_t input_count,
                                   cxxinductor_value* outputs, size_t output_count);
/* Calls the deleter of a tensor; sets the value to none. */
void cxxinductor_release(cxxinductor_value* value);

/* A parameter, buffer or constant by its name. Writes to its memory change the model. The tensor is the caller's, who calls its deleter. */
cxxinductor_status cxxinductor_weight(const cxxinductor_model* model, const char* name, struct DLManagedTensorVersioned** tensor);

/* What became of the model, for people. The text is the caller's. */
cxxinductor_status cxxinductor_explain(const cxxinductor_model* model, char** text);
void cxxinductor_free_text(char* text); /* null: nothing */

#ifdef __cplusplus
}
#endif

#endif /* CXXINDUCTOR_C_H */
