/* Compiles a model in process and runs it on one vector:
 *
 *   cc compile.c -o compile -lsheaf_runtime
 *   ./compile model.sheaf 1 2.5 -4
 *
 * for a model such as
 *
 *   dim n = 3, m = 2
 *   param w : f32[n, m] = glorot
 *   fn main(x: f32[n]) -> f32[m] = tanh(x @ w)
 *
 * Prints the elements of the result, or what is wrong with the model.
 */
#include <sheaf/compiler.h>

#include <stdio.h>
#include <stdlib.h>

static void check(sheaf_status status) {
  if (status == SHEAF_OK)
    return;
  fprintf(stderr, "error: %s\n", sheaf_error_message());
  exit(1);
}

static sheaf_model *compile(const char *path) {
  sheaf_compile_options options = {sizeof options};
  options.path = path;
  options.seed = 1;
  sheaf_model *model;
  sheaf_diagnostics *diagnostics;
  sheaf_status status = sheaf_compile(&options, &model, &diagnostics);
  /* Errors of the source, or warnings. */
  fputs(sheaf_diagnostics_text(diagnostics), stderr);
  if (status == SHEAF_NOT_COMPILED) {
    for (size_t i = 0; i < sheaf_diagnostics_count(diagnostics); ++i) {
      sheaf_diagnostic one = {sizeof one};
      check(sheaf_diagnostics_get(diagnostics, i, &one));
      printf("%s, line %lld, columns %lld to %lld\n", one.file, (long long)one.line,
             (long long)one.column, (long long)one.end_column - 1);
    }
    exit(1);
  }
  sheaf_diagnostics_release(diagnostics);
  check(status);
  return model;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL.sheaf NUMBER ...\n", argv[0]);
    return 2;
  }
  sheaf_model *model = compile(argv[1]);
  int64_t count = argc - 2;
  float *numbers = malloc((size_t)count * sizeof *numbers);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = strtof(argv[i + 2], NULL);
  sheaf_type type = sheaf_model_argument_type(model, 0);
  DLTensor vector = {numbers, {kDLCPU, 0}, 1, sheaf_type_dtype(model, type), &count, NULL, 0};

  sheaf_batch *batch;
  check(sheaf_batch_create(model, &batch));
  sheaf_value x;
  check(sheaf_make_tensor(batch, type, &vector, &x));
  check(sheaf_batch_add(batch, &x, 1, 0));
  sheaf_session *session;
  check(sheaf_session_create(NULL, &session));
  sheaf_result *result;
  check(sheaf_session_run(session, batch, &result));
  if (sheaf_result_error(result, 0)) {
    fprintf(stderr, "error: %s\n", sheaf_result_error(result, 0));
    return 1;
  }
  sheaf_view view;
  check(sheaf_result_value(result, 0, &view));
  DLManagedTensor *y;
  check(sheaf_view_tensor(result, view, &y));
  for (int64_t i = 0; i < y->dl_tensor.shape[0]; ++i)
    printf("%.9g ", ((const float *)y->dl_tensor.data)[i]);
  printf("\n");

  y->deleter(y);
  sheaf_result_release(result);
  sheaf_session_release(session);
  sheaf_batch_release(batch);
  sheaf_model_release(model);
  free(numbers);
  return 0;
}
